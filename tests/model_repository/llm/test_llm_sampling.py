"""SAMPLING_PARAMETERS against the SamplingParams of the installed vLLM. No engine runs."""

import json

import pytest

pytest.importorskip("vllm", reason="the extra `llm` is not installed")

import llm_sampling
from llm_sampling import SamplingError, sampling_params_from
from vllm.sampling_params import RequestOutputKind, SamplingParams

VOCABULARY_SIZE = 2048


def params(text: str | None, **suggested: object) -> SamplingParams:
    return sampling_params_from(text, suggested, VOCABULARY_SIZE)


# One valid value for each parameter of vLLM. A parameter that a new vLLM brings must be added here: see the first test.
VALID = {
    "presence_penalty": 0.5,
    "frequency_penalty": -0.5,
    "repetition_penalty": 1.2,
    "temperature": 0.7,
    "top_p": 0.9,
    "top_k": 5,
    "min_p": 0.1,
    "seed": 7,
    "stop": ["."],
    "stop_token_ids": [3],
    "ignore_eos": True,
    "max_tokens": 9,
    "min_tokens": 2,
    "skip_special_tokens": False,
    "spaces_between_special_tokens": False,
    "watermarking": False,
    "include_stop_str_in_output": True,
    "stream_interval": 2,
    "structured_outputs": {"choice": ["yes", "no"]},
    "logit_bias": {"5": -1.0},
    "allowed_token_ids": [4, 5],
    "extra_args": {"a": 1},
    "bad_words": ["x"],
    "skip_reading_prefix_cache": True,
    "thinking_token_budget": 5,
    "routed_experts_prompt_start": 0,
    "repetition_detection": {"max_pattern_size": 3, "min_count": 2},
    "trace_decode_token_ids": [4],
    "n": 1,
    "logprobs": 3,
    "detokenize": True,
}


def test_every_parameter_of_the_installed_vllm_is_either_served_or_refused_with_a_reason() -> None:
    assert set(llm_sampling.parameter_types()) == set(VALID) | set(llm_sampling.REFUSED)


@pytest.mark.parametrize("name", VALID)
def test_a_valid_value_reaches_vllm(name: str) -> None:
    """CLI-10."""
    given = getattr(params(json.dumps({name: VALID[name]}), temperature=1.0), name)
    if name == "logit_bias":
        assert given == {5: -1.0}
    elif name in ("structured_outputs", "repetition_detection"):
        assert all(getattr(given, key) == value for key, value in VALID[name].items())
    else:
        assert given == VALID[name]


@pytest.mark.parametrize("name", llm_sampling.REFUSED)
def test_what_this_model_decides_itself_is_refused_with_the_reason(name: str) -> None:
    with pytest.raises(SamplingError, match=f"{name} is given; .+; leave it out"):
        params(json.dumps({name: 1}))


@pytest.mark.parametrize("text", [None, "", "  ", "{}", '{"max_tokens": null, "temperature": null}'])
def test_without_parameters_the_models_own_suggestions_count_and_the_answer_may_fill_the_context(
    text: str | None,
) -> None:
    given = params(text, temperature=0.25, top_p=0.5)
    assert (given.temperature, given.top_p, given.max_tokens) == (0.25, 0.5, None)
    assert given.output_kind == RequestOutputKind.DELTA


def test_what_is_asked_for_wins_over_what_the_model_suggests() -> None:
    assert params('{"temperature": 0.5}', temperature=1.0).temperature == 0.5


@pytest.mark.parametrize(
    ("given", "nearest"),
    [
        ("temprature", "temperature"),
        ("Top_K", "top_k"),
        ("max_new_tokens", "max_tokens"),
        ("stop_words", "stop"),
        ("random_seed", "seed"),
        ("guided_json", "structured_outputs"),
        ("best_of", "n"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest_one(given: str, nearest: str) -> None:
    """CLI-10."""
    with pytest.raises(SamplingError, match=f"unknown {given}; .*did you mean {nearest} instead of {given}"):
        params(json.dumps({given: 1, "max_tokens": 4}))


def test_all_unknown_names_are_told_at_once() -> None:
    with pytest.raises(SamplingError, match="unknown temprature, beam_width; .*nothing is like beam_width"):
        params('{"temprature": 1, "beam_width": 2}')


@pytest.mark.parametrize(
    "text",
    [
        '{"temperature": "hot"}',
        '{"temperature": 3}',
        '{"temperature": NaN}',
        '{"temperature": 1e999}',
        '{"top_p": 0}',
        '{"top_p": 1.5}',
        '{"top_k": -5}',
        '{"top_k": 1.5}',
        '{"min_p": -1}',
        '{"seed": true}',
        '{"seed": 99999999999999999999}',
        '{"max_tokens": 0}',
        '{"max_tokens": 1.5}',
        '{"max_tokens": "9"}',
        '{"max_tokens": 4, "min_tokens": 5}',
        '{"stop": ""}',
        '{"stop": [1]}',
        '{"stop": {"a": 1}}',
        '{"n": 2}',
        '{"n": 0}',
        '{"detokenize": false}',
        '{"logit_bias": {"x": 1}}',
        '{"logit_bias": {"2048": 1}}',
        '{"stop_token_ids": [-1]}',
        '{"allowed_token_ids": [99999]}',
        '{"repetition_penalty": -1}',
        '{"structured_outputs": {}}',
        '{"structured_outputs": {"regex": "a", "choice": ["b"]}}',
        '{"structured_outputs": {"regx": "a"}}',
        '{"structured_outputs": {"regex": "a", "whitespce_pattern": "b"}}',
        '{"seed": 1, "seed": 2}',
        "[]",
        "1",
        '"text"',
        "{",
        '{"a": }',
        "[" * 100_000,
        "1" * 5000,
    ],
)
def test_a_wrong_value_is_refused_in_four_parts(text: str) -> None:
    with pytest.raises(SamplingError) as caught:
        params(text)
    assert str(caught.value).startswith("SAMPLING_PARAMETERS: ")
    assert str(caught.value).count("; ") >= 2
    assert len(str(caught.value)) < 1000
