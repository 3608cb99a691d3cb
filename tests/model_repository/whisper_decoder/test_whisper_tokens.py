import dataclasses

import numpy as np
import pytest
import whisper_tokens
from whisper.decoding import DecodingOptions, DecodingTask
from whisper_tokens import InputError, language_of, prompt_of, task_of

from weights.whisper.checkpoint import reference_network
from weights.whisper.description import tokenizer_of


@pytest.mark.parametrize("which", ["english", "multilingual"])
def test_text_of_any_tokens_is_the_package_s(which: str, request: pytest.FixtureRequest) -> None:
    small = request.getfixturevalue(which)
    tokenizer = tokenizer_of(small.dimensions)
    rng = np.random.default_rng(0)
    for _ in range(50):
        tokens = rng.integers(0, small.tokens.eot, 30).tolist()
        assert small.vocabulary.decode(tokens) == tokenizer.decode(tokens)


def test_special_tokens_have_no_text(multilingual) -> None:
    tokens = multilingual.tokens
    assert multilingual.vocabulary.decode([tokens.sot, tokens.eot, tokens.timestamp_begin + 3]) == ""


@pytest.mark.parametrize("before", [0, 3, 400])
@pytest.mark.parametrize(("language", "task"), [("fr", "transcribe"), ("fr", "translate"), ("yue", "transcribe")])
def test_prompts_are_the_package_s(multilingual, language: str, task: str, before: int) -> None:
    """WHI-04; with timestamps, so without <|notimestamps|>."""
    said = list(range(100, 100 + before))
    options = DecodingOptions(language=language, task=task, prompt=said, fp16=False)
    expected = DecodingTask(reference_network(multilingual.checkpoint), options).initial_tokens
    assert tuple(prompt_of(multilingual.tokens, language, task, said, multilingual.sizes.n_text_ctx)) == expected


def test_english_only_prompts_have_neither_language_nor_task(english) -> None:
    """WHI-04."""
    assert prompt_of(english.tokens, "en", "transcribe", [], 448) == [english.tokens.sot]
    assert prompt_of(english.tokens, "en", "transcribe", [7], 448) == [english.tokens.sot_prev, 7, english.tokens.sot]


@pytest.mark.parametrize(
    ("asked", "meant"), [("", None), ("fr", "fr"), (" FR ", "fr"), ("French", "fr"), ("castilian", "es")]
)
def test_a_language_is_known_by_code_and_by_name(multilingual, asked: str, meant: str | None) -> None:
    """WHI-04: an empty one asks for detection."""
    assert language_of(multilingual.tokens, asked) == meant


def test_an_unknown_language_is_answered_with_the_list(multilingual) -> None:
    """WHI-04."""
    with pytest.raises(InputError, match='LANGUAGE: "klingon"; one of en, zh, de, .*yue is expected; leave it empty'):
        language_of(multilingual.tokens, "klingon")


def test_an_english_only_checkpoint_takes_english_alone(english) -> None:
    assert language_of(english.tokens, "") == language_of(english.tokens, "English") == "en"
    with pytest.raises(InputError, match='LANGUAGE: "fr"; this checkpoint knows English only'):
        language_of(english.tokens, "fr")


def test_tasks(english, multilingual) -> None:
    assert task_of(multilingual.tokens, "") == "transcribe"
    assert task_of(multilingual.tokens, "Translate") == "translate"
    with pytest.raises(InputError, match='TASK: "sing"; transcribe or translate is expected'):
        task_of(multilingual.tokens, "sing")
    with pytest.raises(InputError, match='TASK: "translate"; this checkpoint knows English only'):
        task_of(english.tokens, "translate")


def test_the_description_holds_every_size_the_server_needs(english) -> None:
    known = dataclasses.asdict(english.dimensions)
    read = dataclasses.asdict(english.sizes)
    assert read.pop("dtype") == "float32"
    assert read == {name: known[name] for name in read}
    assert whisper_tokens.Sizes(**read, dtype="float32") == english.sizes
