"""The messages of a chat, with their pictures and recordings taken out of OpenAI's parts."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from clients.gateway.bodies import Message
from clients.gateway.media import bytes_of_base64, bytes_of_data_url, samples_of
from clients.gateway.problems import invalid, unsupported


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Turn:
    """One message.

    Attributes:
        message: as the chat template takes it, its content being the text alone.
        audio: float32 [n], mono, 16 kHz, -1 to 1; None without a recording.
        image: the bytes of a picture's file; None without one.
    """

    message: dict[str, Any]
    audio: np.ndarray | None = None
    image: bytes | None = None

    @property
    def has_media(self) -> bool:
        return self.audio is not None or self.image is not None

    @property
    def text(self) -> str:
        return self.message["content"] or ""


async def turns_of(messages: Sequence[Message], longest_s: float) -> list[Turn]:
    """The turns of a chat.

    Raises:
        Problem: a part is of a kind that isn't taken, or can't be read.
    """
    return [await turn_of(one, f"messages.{place}", longest_s) for place, one in enumerate(messages)]


async def turn_of(message: Message, where: str, longest_s: float) -> Turn:
    """One message; the models take one picture and one recording with it."""
    role = "system" if message.role == "developer" else message.role  # one thing to OpenAI, unknown to templates
    known = {"role": role, **(message.model_extra or {})}
    if known.get("tool_calls"):
        known["tool_calls"] = with_objects(known["tool_calls"], f"{where}.tool_calls")
    if not isinstance(message.content, list):
        return Turn(message={**known, "content": message.content})
    texts: list[str] = []
    media: dict[str, Any] = {}
    for place, part in enumerate(message.content):
        param = f"{where}.content.{place}"
        kind = part.get("type")
        if kind == "text" and isinstance(part.get("text"), str):
            texts.append(part["text"])
        elif kind == "image_url":
            _add(media, "image", bytes_of_data_url(_inner(part, kind, "url", param), param), param)
        elif kind == "input_audio":
            data = bytes_of_base64(_inner(part, kind, "data", param), param)
            _add(media, "audio", await samples_of(data, longest_s, param), param)
        else:
            raise unsupported(param, f"a part of type {kind!r}; text, image_url and input_audio are taken")
    if media and role != "user":
        raise unsupported(where, f"a picture or a recording in a message of the {role}")
    return Turn(message={**known, "content": "".join(texts)}, **media)


def _inner(part: dict[str, Any], kind: str, key: str, param: str) -> str:
    inner = part.get(kind)
    value = inner.get(key) if isinstance(inner, dict) else None
    if not isinstance(value, str):
        raise invalid(param, f"no {kind}.{key}", f'{{"type": "{kind}", "{kind}": {{"{key}": "..."}}}} is needed')
    return value


def _add(media: dict[str, Any], kind: str, value: Any, param: str) -> None:
    if kind in media:
        raise unsupported(param, f"a second {kind} in one message; the pipelines take one of each")
    media[kind] = value


def with_objects(calls: Any, param: str) -> list[dict[str, Any]]:
    """Calls of tools with their arguments as objects, as chat templates want them; OpenAI's are JSON inside a text."""
    try:
        return [{**one, "function": {**one["function"], "arguments": _object(one)}} for one in calls]
    except (KeyError, TypeError, ValueError) as error:
        form = '[{"id": "...", "type": "function", "function": {"name": "...", "arguments": "{...}"}}] is needed'
        raise invalid(param, "no calls of tools", form) from error


def _object(call: dict[str, Any]) -> Any:
    arguments = call["function"]["arguments"]
    return json.loads(arguments) if isinstance(arguments, str) else arguments
