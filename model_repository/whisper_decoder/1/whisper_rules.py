"""The next token of every row, by openai-whisper's rules at temperature 0.

In: logits float32 [rows, n_vocab], numpy's or torch's, changed in place, and what each row has said so far. Out: tokens
and their log probabilities, where the logits lie. Timestamps come in pairs, never decrease, and the first is at most
1 s.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from whisper_memory import Array, library_of
from whisper_tokens import Tokens

MAX_INITIAL_TIMESTAMP = 50  # 1 s, in steps of 0.02 s


@dataclass(slots=True)
class Said:
    """What one row has said in its window so far."""

    tokens: list[int] = field(default_factory=list)
    logprob: float = 0.0
    last_timestamp: int | None = None

    def add(self, token: int, logprob: float, timestamp_begin: int) -> None:
        self.tokens.append(token)
        self.logprob += logprob
        if token >= timestamp_begin:
            self.last_timestamp = token


def choose(logits: Array, said: Sequence[Said], tokens: Tokens) -> tuple[Array, Array]:
    """(token int64 [rows], log probability float32 [rows]) of the most probable allowed token.

    A timestamp is forced where all timestamps together are more probable than any single other token.
    """
    logits[:, list(tokens.suppress)] = -np.inf
    for row, so_far in zip(logits, said, strict=True):
        _bar(row, so_far, tokens)
    text, stamps = logits[:, : tokens.timestamp_begin], logits[:, tokens.timestamp_begin :]
    library = library_of(logits)
    is_stamp = log_sum_exp(stamps) > library.amax(text, axis=1)
    text[is_stamp] = -np.inf
    return logits.argmax(axis=1), library.amax(logits, axis=1) - log_sum_exp(logits)


def probability(logits: Array, token: int) -> float:
    """Of one token, before any rule: logits float32 [n_vocab]."""
    return math.exp(float(logits[token] - log_sum_exp(logits[None])[0]))


def log_sum_exp(values: Array) -> Array:
    """Over the last axis: [rows, n] -> [rows]; rows of minus infinity stay that."""
    library = library_of(values)
    top = library.amax(values, axis=1)
    finite = library.where(library.isfinite(top), top, 0)
    with np.errstate(divide="ignore"):
        return finite + library.log(library.exp(values - finite[:, None]).sum(axis=1))


def _bar(logits: Array, said: Said, tokens: Tokens) -> None:
    """Sets to minus infinity what this row may not say next."""
    begin = tokens.timestamp_begin
    if not said.tokens:
        logits[list(tokens.suppress_at_start)] = -np.inf
        logits[:begin] = -np.inf
        logits[begin + MAX_INITIAL_TIMESTAMP + 1 :] = -np.inf
        return
    after_stamp = said.tokens[-1] >= begin
    after_pair = after_stamp and (len(said.tokens) < 2 or said.tokens[-2] >= begin)
    if after_pair:
        logits[begin:] = -np.inf
    elif after_stamp:
        logits[: tokens.eot] = -np.inf
    if said.last_timestamp is not None:
        # a segment has a length; only the second stamp of a pair may repeat the first
        earliest = said.last_timestamp + (0 if after_stamp and not after_pair else 1)
        logits[begin:earliest] = -np.inf
