"""The committed small Llama: that it is whole, and as faithful as its model card says."""

import json

import pytest

pytest.importorskip("transformers", reason="the extra `llm` is not installed")

import torch
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from weights.llm.measure import CHECKPOINT, SEED, example_sets, wrong_answers
from weights.llm.train_tiny import Batches, PromptText

# The share of exactly right answers that each set must reach, over few prompts; the model card has them all.
AT_LEAST = {
    "random, words and questions as in training": 0.92,
    "random, half of the words and all questions never trained on": 0.90,
    "Whisper's transcripts of real recordings": 0.97,
    "sentences as people say them": 0.97,
    "two-word class names": 0.98,
}


def test_the_checkpoint_is_whole_and_small() -> None:
    names = {path.name for path in CHECKPOINT.iterdir()}
    assert names >= {"config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "README.md"}
    assert sum(path.stat().st_size for path in CHECKPOINT.iterdir()) < 5_000_000


def test_answers_are_greedy_unless_asked_otherwise() -> None:
    assert json.loads((CHECKPOINT / "generation_config.json").read_text())["temperature"] == 0.0


def test_the_model_card_names_seed_and_licence() -> None:
    card = (CHECKPOINT / "README.md").read_text(encoding="utf-8")
    assert "20251" in card and "Apache-2.0" in card


def test_answers_are_faithful() -> None:
    torch.set_num_threads(1)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(CHECKPOINT)
    model = LlamaForCausalLM.from_pretrained(CHECKPOINT, dtype=torch.float32)
    batches = Batches(tokenizer, PromptText(tokenizer), SEED)
    shares = {}
    for name, examples in example_sets(100):
        if name in AT_LEAST:
            encoded = [batches.encode(example) for example in examples]
            shares[name] = 1 - len(wrong_answers(model, tokenizer, examples, encoded)) / len(examples)
    assert set(shares) == set(AT_LEAST)
    short = {name: share for name, share in shares.items() if share < AT_LEAST[name]}
    assert not short, f"less faithful than promised: {short}"
