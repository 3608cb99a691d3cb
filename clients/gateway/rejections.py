"""Whose fault a refused request is, from what the server said.

Triton sends no status inside a stream, only words. The served models begin a complaint about an input with its name:
`AUDIO: 0 samples; at least 1 is needed; send mono 16 kHz float32 samples`. That is part of their contract.
"""

import re

import grpc

from clients.errors import RequestRejected

IN_ENSEMBLE = r"(?:in ensemble '[^']*', )?"  # Triton's, in front of what a step of an ensemble said
ABOUT_INPUT = re.compile(IN_ENSEMBLE + r"[A-Z][A-Z_]*(?:, [A-Z][A-Z_]*)*: ")
FULL = re.compile(IN_ENSEMBLE + r"llm: too many requests: ")
ENGINE_IS_AWAY = re.compile(IN_ENSEMBLE + r"llm: the engine (?:has )?died")


def is_wrong_input(words: str) -> bool:
    """Whether a model complained about an input, so that sending the same again can't help."""
    return ABOUT_INPUT.match(words) is not None


def is_away(error: RequestRejected) -> bool:
    """Whether the engine has died, so that sending the same again may help once another has started."""
    return ENGINE_IS_AWAY.match(error.found) is not None


def is_full(error: RequestRejected) -> bool:
    """Whether a queue of the server was full, so that sending the same again later may help."""
    cause = error.__cause__
    if FULL.match(error.found):
        return True
    return isinstance(cause, grpc.RpcError) and cause.code() == grpc.StatusCode.UNAVAILABLE
