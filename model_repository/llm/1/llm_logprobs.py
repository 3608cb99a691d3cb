"""How likely the engine held each token of the answer.

In: one of vLLM's outputs, asked for with the sampling parameter `logprobs`. Out: the list of LOGPROBS, an entry for
each token: {"token", "logprob", "top": [{"token", "logprob"}, ...]}, `top` best first.
"""

from typing import Any

LEAST = -9999.0  # JSON has no minus infinity


def logprobs_of(output: Any) -> list[dict[str, Any]]:
    """The entries of the tokens that are new in this output; none when nobody asked."""
    if not output.logprobs:
        return []
    pairs = list(zip(output.token_ids, output.logprobs, strict=True))
    if output.finish_reason == "stop" and not isinstance(output.stop_reason, str):
        pairs.pop()  # the token that ends the answer is no part of it
    return [_entry(token_id, found) for token_id, found in pairs]


def _entry(token_id: int, found: Any) -> dict[str, Any]:
    """`found`: by token id, those that were likeliest and the one that was taken, which need not be among them."""
    ranked = sorted(found.values(), key=lambda one: one.rank)
    top = [_one(each) for each in ranked]
    return {**_one(found[token_id]), "top": top}


def _one(found: Any) -> dict[str, Any]:
    return {"token": found.decoded_token or "", "logprob": max(float(found.logprob), LEAST)}
