"""Log probabilities of tokens in the forms of OpenAI's two endpoints."""

from collections.abc import Sequence
from typing import Any

from clients.gateway.problems import invalid
from clients.values import TokenLogprob

Json = dict[str, Any]
MOST_TOP = 20


def wanted_in_chat(extra: Json) -> Json:
    """The engine's parameter for `logprobs` and `top_logprobs`, both taken out of `extra`."""
    wanted, top = extra.pop("logprobs", None), extra.pop("top_logprobs", None)
    if wanted is not None and not isinstance(wanted, bool):
        raise invalid("logprobs", f"{wanted!a:.100}", "true or false is needed")
    if top is not None and not wanted:
        raise invalid("top_logprobs", "it is given alone", "logprobs: true is needed with it")
    return {"logprobs": _count("top_logprobs", top or 0)} if wanted else {}


def wanted_in_completion(extra: Json) -> Json:
    """The engine's parameter for `logprobs`, a number here, taken out of `extra`."""
    top = extra.pop("logprobs", None)
    return {} if top is None else {"logprobs": _count("logprobs", top)}


def _count(name: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MOST_TOP:
        raise invalid(name, f"{value!a:.100}", f"a whole number of 0 to {MOST_TOP} is needed")
    return value


def in_chat(tokens: Sequence[TokenLogprob], top: int) -> Json | None:
    """`logprobs` of a choice of a chat; None when nobody asked.

    The engine tells the `top` likeliest tokens and the one that was taken, which need not be among them.
    """
    if not tokens:
        return None
    entries = [
        {**_entry(one.token, one.logprob), "top_logprobs": [_entry(*each) for each in one.top[:top]]} for one in tokens
    ]
    return {"content": entries, "refusal": None}


def _entry(token: str, logprob: float) -> Json:
    return {"token": token, "logprob": logprob, "bytes": list(token.encode("utf-8", "replace"))}


def in_completion(tokens: Sequence[TokenLogprob], start: int) -> Json | None:
    """`logprobs` of a choice of a completion; start: characters of the answer before these tokens."""
    if not tokens:
        return None
    offsets = [start + sum(len(one.token) for one in tokens[:place]) for place in range(len(tokens))]
    return {
        "tokens": [one.token for one in tokens],
        "token_logprobs": [one.logprob for one in tokens],
        "top_logprobs": [dict(one.top) for one in tokens],
        "text_offset": offsets,
    }
