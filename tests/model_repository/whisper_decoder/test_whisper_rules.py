"""The rules against the package's own logit filters and greedy decoder, on random histories."""

import numpy as np
import pytest
import torch
from whisper.decoding import DecodingOptions, DecodingTask
from whisper_rules import Said, choose, log_sum_exp, probability

from weights.whisper.checkpoint import reference_network


@pytest.fixture(scope="module")
def task(english) -> DecodingTask:
    network = reference_network(english.checkpoint)
    network.dims.n_audio_ctx = 1500  # of every real checkpoint; decides how long a timestamp's step is
    return DecodingTask(network, DecodingOptions(fp16=False, language="en"))


def history(rng: np.random.Generator, length: int, eot: int, begin: int) -> list[int]:
    """Text and timestamps that never decrease, as a decoder would have said them."""
    stamps = iter(sorted(rng.integers(begin, begin + 1501, length)))
    return [int(next(stamps)) if rng.random() < 0.4 else int(rng.integers(0, eot)) for _ in range(length)]


def package_s_choice(task: DecodingTask, logits: np.ndarray, said: list[int]) -> tuple[int, float]:
    tokens = torch.tensor([[*task.initial_tokens, *said]])
    ours = torch.from_numpy(logits[None].copy())
    for rule in task.logit_filters:
        rule.apply(ours, tokens)
    total = torch.zeros(1)
    chosen, _ = task.decoder.update(tokens, ours, total)
    return int(chosen[0, -1]), float(total[0])


@pytest.mark.parametrize("seed", range(8))
def test_choices_and_probabilities_are_the_package_s(english, task, seed: int) -> None:
    rng = np.random.default_rng(seed)
    tokens = english.tokens
    histories = [history(rng, length, tokens.eot, tokens.timestamp_begin) for length in (0, 1, 2, 2, 3, 5, 9, 20)]
    logits = 4 * rng.standard_normal((len(histories), english.sizes.n_vocab), np.float32)
    logits[:, tokens.timestamp_begin :] += rng.uniform(-4, 6, (len(histories), 1)).astype(np.float32)
    logits[:, tokens.eot] += rng.choice([0, 30], len(histories))
    expected = [package_s_choice(task, row, said) for row, said in zip(logits, histories, strict=True)]

    said = [Said() for _ in histories]
    for so_far, tokens_said in zip(said, histories, strict=True):
        for token in tokens_said:
            so_far.add(token, 0.0, tokens.timestamp_begin)
    chosen, logprobs = choose(logits.copy(), said, tokens)
    assert chosen.tolist() == [token for token, _ in expected]
    np.testing.assert_allclose(logprobs, [logprob for _, logprob in expected], atol=1e-4)


def test_the_cases_above_hold_timestamps_text_and_the_end(english, task) -> None:
    kinds = set()
    for seed in range(8):
        rng = np.random.default_rng(seed)
        logits = 4 * rng.standard_normal(english.sizes.n_vocab, np.float32)
        token, _ = package_s_choice(task, logits, history(rng, 9, english.tokens.eot, english.tokens.timestamp_begin))
        kinds.add(token >= english.tokens.timestamp_begin)
    assert kinds == {True, False}


def test_probability_and_log_sum_exp_hold_out_minus_infinity() -> None:
    logits = np.array([0.0, np.log(3.0), -np.inf], np.float32)
    assert probability(logits, 1) == pytest.approx(0.75)
    assert log_sum_exp(np.full((1, 3), -np.inf, np.float32))[0] == -np.inf
