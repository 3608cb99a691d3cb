"""The model `llm`: chat messages become its request, its responses become Deltas and a Finished."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from clients.arrays import given, json_text, read_json, read_number, read_text
from clients.defaults import MAX_TOKENS
from clients.tensors import Request, Response
from clients.values import ChatEvent, Delta, Finished, TokenLogprob

MODEL = "llm"
Message = Mapping[str, Any]


def chat_request(messages: Sequence[Message] | str, *, max_tokens: int = MAX_TOKENS, **sampling: Any) -> Request:
    """The request for the next message of a chat; a single string is one message of the user."""
    chat = [{"role": "user", "content": messages}] if isinstance(messages, str) else list(messages)
    tensors = (json_text("MESSAGES", chat), json_text("SAMPLING_PARAMETERS", sampling_options(max_tokens, sampling)))
    return Request(model=MODEL, tensors=tensors)


def sampling_options(max_tokens: int, sampling: Mapping[str, Any]) -> dict[str, Any]:
    """Every option that was given; the server refuses by name what its engine doesn't know."""
    return {"max_tokens": max_tokens, **given(sampling)}


def read_chat_events(response: Response) -> Iterator[ChatEvent]:
    """The events in one streamed response; none in an empty one."""
    piece = read_text(response, "TEXT") or ""
    logprobs = tuple(_token_logprob(one) for one in read_json(response, "LOGPROBS") or ())
    if piece or logprobs:
        yield Delta(text=piece, logprobs=logprobs)
    reason = read_text(response, "FINISH_REASON")
    if reason is not None:
        counts = (read_number(response, name) for name in ("PROMPT_TOKENS", "COMPLETION_TOKENS"))
        prompt_tokens, completion_tokens = counts
        yield Finished(reason=reason, prompt_tokens=prompt_tokens, completion_tokens=completion_tokens)


def _token_logprob(found: dict[str, Any]) -> TokenLogprob:
    top = tuple((one["token"], float(one["logprob"])) for one in found["top"])
    return TokenLogprob(token=found["token"], logprob=float(found["logprob"]), top=top)
