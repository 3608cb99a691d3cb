"""The prompts that the small Llama is trained and measured on."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

from weights.llm.tiny_prompts import COCO, Example, ExampleMaker, answer_for, listing, plural, vocabulary

PROMPT = Path(__file__).parents[3] / "model_repository" / "prompt" / "1"


@pytest.mark.parametrize(
    ("one", "many"),
    [
        ("person", "people"),
        ("bus", "buses"),
        ("wine glass", "wine glasses"),
        ("baseball glove", "baseball gloves"),
        ("knife", "knives"),
        ("mouse", "mice"),
        ("sheep", "sheep"),
        ("couch", "couches"),
        ("cell phone", "cell phones"),
        ("toothbrush", "toothbrushes"),
        ("key", "keys"),
        ("city", "cities"),
    ],
)
def test_plurals_are_english(one: str, many: str) -> None:
    assert plural(one) == many


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ((("bus", 1),), "1 bus"),
        ((("person", 4), ("bus", 1)), "4 people and 1 bus"),
        ((("cup", 3), ("dining table", 1), ("fork", 2)), "3 cups, 1 dining table and 2 forks"),
    ],
)
def test_counts_are_told_in_words(counts: tuple[tuple[str, int], ...], words: str) -> None:
    assert listing(counts) == words


@pytest.mark.parametrize(
    ("transcript", "counts", "about", "answer"),
    [
        ("Go on.", (("bus", 2),), "both", 'I heard "Go on." and I see 2 buses.'),
        ("Go on.", None, "both", 'I heard "Go on."'),
        (None, (("bus", 2),), "both", "I see 2 buses."),
        ("", (), "both", "I heard nothing and I see nothing."),
        (None, None, "both", "I was given no recording and no picture."),
        ("Go on.", (("bus", 2),), "recording", 'I heard "Go on."'),
        ("Go on.", (("bus", 2),), "picture", "I see 2 buses."),
        (None, (("bus", 2),), "recording", "I was given no recording."),
        ("Go on.", None, "picture", "I was given no picture."),
    ],
)
def test_the_right_answer_tells_what_was_asked_about_and_what_was_not_given(
    transcript: str | None, counts: tuple[tuple[str, int], ...] | None, about: str, answer: str
) -> None:
    assert answer_for(transcript, counts, about) == answer


def test_the_same_seed_makes_the_same_examples() -> None:
    def twenty(seed: int) -> list[Example]:
        maker = ExampleMaker(seed)
        return [maker.example() for _ in range(20)]

    assert twenty(1) == twenty(1) != twenty(2)


def test_words_kept_for_measuring_are_never_trained_on() -> None:
    trained, kept = set(vocabulary(False)), set(vocabulary(True))
    assert not trained & kept
    assert 0.05 < len(kept) / len(trained | kept) < 0.15


def test_all_coco_classes_are_there() -> None:
    assert len(set(COCO)) == 80


@pytest.fixture(scope="module")
def served() -> ModuleType:
    spec = importlib.util.spec_from_file_location("prompt_messages_for_training", PROMPT / "prompt_messages.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_training_prompts_are_what_the_pipeline_serves(served: ModuleType) -> None:
    """The prompt step makes of the detector's JSON what training makes of the counts it invents."""
    pytest.importorskip("transformers", reason="the extra `llm` is not installed")
    from transformers import PreTrainedTokenizerFast

    from weights.llm.train_tiny import HERE, PromptText

    text = PromptText(PreTrainedTokenizerFast.from_pretrained(HERE / "checkpoint"))
    template = served.load_template(PROMPT / "template.jinja")
    maker = ExampleMaker("served")
    examples = [example for example in (maker.example() for _ in range(200)) if not example.bare]
    for example in examples:
        detections = None
        if example.counts is not None:
            labels = [label for label, count in example.counts for _ in range(count)]
            detections = json.dumps({"detections": [{"label": label} for label in labels]})
        served_messages = served.messages_from(template, example.transcript, detections, example.question)
        assert text.messages(example) == served_messages
