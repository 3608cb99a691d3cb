"""Values as nobody would send them: JSON with something in it replaced, files with something in them damaged.

In: a good value and a `random.Random`. Out: another value, the same for the same random state.
"""

from __future__ import annotations

import random
from typing import Any

ODD: list[Any] = [
    None, True, False, 0, -1, 1, 2**31, 2**63, -(2**70), 0.5, 1e308, float("nan"), float("inf"), "", "a", "\x00",
    "\ud800", "é" * 50, "data:image/png;base64,QUJD", "data:", "http://127.0.0.1/", [], [[]], {}, {"type": "text"},
    {"type": "image_url"}, {"type": "image_url", "image_url": "x"}, {"type": "input_audio", "input_audio": {"data": 1}},
    {"type": "json_schema"}, {"type": "json_schema", "json_schema": 3}, {"type": ["x"]}, [1, 2], ["a", None],
]  # fmt: skip
KEYS = (
    "model", "messages", "prompt", "stream", "stream_options", "n", "max_tokens", "max_completion_tokens", "stop",
    "seed", "temperature", "response_format", "logprobs", "tools", "tool_choice", "user", "\ud800", "include", "role",
)  # fmt: skip
MORE_KEYS = (
    "top_p", "top_k", "min_p", "min_tokens", "ignore_eos", "bad_words", "logit_bias", "structured_outputs", "content",
    "repetition_penalty", "stop_token_ids", "prompt_logprobs", "allowed_token_ids", "detections", "label", "extra_args",
)  # fmt: skip


def changed(value: Any, chance: random.Random, keys: tuple[str, ...] = KEYS) -> Any:
    """The value with one thing in it replaced, removed or added."""
    if isinstance(value, dict) and value and chance.random() < 0.8:
        key = chance.choice(list(value))
        is_below = chance.random() < 0.7
        return {**value, key: changed(value[key], chance, keys)} if is_below else with_odd(value, chance, keys)
    if isinstance(value, list) and value and chance.random() < 0.8:
        place = chance.randrange(len(value))
        other = changed(value[place], chance, keys)
        return [*value[:place], other, *value[place + 1 :], *value[: chance.randrange(2)]]
    return chance.choice(ODD)


def with_odd(value: dict[str, Any], chance: random.Random, keys: tuple[str, ...] = KEYS) -> dict[str, Any]:
    """The value with a further key, and perhaps one fewer."""
    added = {**value, chance.choice(keys): chance.choice(ODD)}
    if chance.random() < 0.3:
        del added[chance.choice(list(added))]
    return added


def damaged(file: bytes, chance: random.Random) -> bytes:
    """The file cut off, with bytes of it replaced, repeated or left out; or bytes that never were a file."""
    match chance.randrange(6):
        case 0:
            return file[: chance.randrange(len(file) + 1)]
        case 1:
            place = chance.randrange(len(file))
            return file[:place] + chance.randbytes(chance.randrange(1, 64)) + file[place:]
        case 2:
            place = chance.randrange(len(file))
            return file[:place] + file[place + chance.randrange(1, 2000) :]
        case 3:
            return chance.randbytes(chance.choice((0, 1, 8, 500, 5000)))
        case _:
            # Most of what a parser believes stands at the beginning.
            found = bytearray(file)
            for _ in range(chance.randrange(1, 20)):
                found[min(int(chance.expovariate(1 / 200)), len(found) - 1)] = chance.randrange(256)
            return bytes(found)
