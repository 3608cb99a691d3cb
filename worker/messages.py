"""A Kafka record comes in; what to ask, and the record that answers it, go out. Pure.

A message is a JSON object with the fields of its pipeline (batch/calls.py), or a recording or picture itself with a
header content-type of audio/* or image/*. The answer has the key of its message, or where it came from if that had
none, so that a message worked on twice gives the same key twice: a compacted topic keeps one. All headers go along,
traceparent and tracestate among them, and tritonkit-source says where the message came from.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from batch.errors import RowError

SOURCE, PIPELINE, REASON = "tritonkit-source", "tritonkit-pipeline", "tritonkit-reason"
Headers = Sequence[tuple[str, bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A record as it was taken."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()

    @property
    def source(self) -> str:
        """Where it came from: topic/partition/offset."""
        return f"{self.topic}/{self.partition}/{self.offset}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A record to send."""

    key: bytes
    value: bytes | None
    headers: Headers


def fields_of(message: Message) -> Mapping[str, Any]:
    """What to ask the pipeline.

    Raises:
        RowError: the message is nothing that a pipeline takes.
    """
    kind = dict(message.headers).get("content-type", b"").partition(b"/")[0].decode("ascii", "replace")
    if message.value is None:
        raise RowError("no value (a tombstone); a JSON object with the fields of the pipeline is needed")
    if kind in ("audio", "image"):
        return {kind: message.value}
    try:
        fields = json.loads(message.value)
    except ValueError as error:
        raise RowError(f"no JSON: {error}; a JSON object with the fields of the pipeline is needed") from error
    if not isinstance(fields, dict):
        raise RowError(f"a JSON {type(fields).__name__}; an object with the fields of the pipeline is needed")
    return {name: value for name, value in fields.items() if name != "id"}


def answer(message: Message, pipeline: str, result: Mapping[str, Any]) -> Answer:
    """The record for the outbound topic."""
    value = json.dumps(result, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return Answer(key=key_of(message), value=value, headers=headers_of(message, pipeline))


def dead_letter(message: Message, pipeline: str, reason: str) -> Answer:
    """The record for the dead-letter topic: the message as it came, and why it went there."""
    headers = [*headers_of(message, pipeline), (REASON, reason.encode("utf-8", "surrogatepass"))]
    return Answer(key=key_of(message), value=message.value, headers=headers)


def key_of(message: Message) -> bytes:
    """What makes two answers the same answer."""
    return message.source.encode() if message.key is None else message.key


def trace_of(message: Message) -> dict[str, str]:
    """The message's headers as text, for the call that answers it: the trace goes on in the server."""
    return {name: value.decode("latin-1") for name, value in message.headers}


def headers_of(message: Message, pipeline: str) -> list[tuple[str, bytes]]:
    """The message's own headers, and where it came from; a message that comes back from the dead has new ones."""
    ours = (SOURCE, PIPELINE, REASON)
    kept = [(name, value) for name, value in message.headers if name not in ours]
    return [*kept, (SOURCE, message.source.encode()), (PIPELINE, pipeline.encode())]
