"""Calls of tools found in what a model writes.

Models write them in forms of their own. Three are known, those of most open models; anything else stays text:

    Hermes, Qwen     <tool_call>{"name": "f", "arguments": {...}}</tool_call>, once or several times, after any text
    Llama 3          {"name": "f", "parameters": {...}} and nothing else
    Mistral          [{"name": "f", "arguments": {...}}, ...] and nothing else, after [TOOL_CALLS] if that is shown
"""

import json
import re
import uuid
from collections.abc import AsyncGenerator, Collection
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from clients.gateway.tools import Tools
from clients.values import Delta, Event, Finished

OPEN, MISTRAL = "<tool_call>", "[TOOL_CALLS]"
TAGGED = re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of a tool; arguments: a JSON object as text."""

    name: str
    arguments: str
    id: str = field(default_factory=lambda: f"call_{uuid.uuid4().hex}")

    def as_json(self) -> dict[str, Any]:
        """OpenAI's object."""
        return {"id": self.id, "type": "function", "function": {"name": self.name, "arguments": self.arguments}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """The calls at the end of an answer."""

    calls: tuple[Call, ...]


async def with_calls(events: AsyncGenerator[Event, None], tools: Tools) -> AsyncGenerator[Event | Called, None]:
    """The events of one answer; text that may be a call is kept back until it is known what it is."""
    text, shown = "", 0
    async with aclosing(events):
        async for event in events:
            if isinstance(event, Delta):
                text += event.text
                ready = 0 if tools.forced or tools.is_required else certain(text)
                if ready > shown or event.logprobs:
                    yield Delta(text=text[shown:ready], logprobs=event.logprobs)
                shown = max(shown, ready)
            elif isinstance(event, Finished):
                rest, calls = calls_in(text[shown:], tools)
                if rest:
                    yield Delta(text=rest)
                if calls:
                    yield Called(calls=calls[:1] if tools.is_single else calls)
                reason = "tool_calls" if calls and not tools.forced and event.reason == "stop" else event.reason
                yield Finished(
                    reason=reason,
                    prompt_tokens=event.prompt_tokens,
                    completion_tokens=event.completion_tokens,
                )
            else:
                yield event


def certain(text: str) -> int:
    """How much of an unfinished answer is surely no call."""
    begun = text.lstrip()
    if not begun or begun[0] in "{[":
        return 0
    if OPEN in text:
        return text.index(OPEN)
    tail = next((size for size in range(len(OPEN) - 1, 0, -1) if text.endswith(OPEN[:size])), 0)
    return len(text) - tail


def calls_in(text: str, tools: Tools) -> tuple[str, tuple[Call, ...]]:
    """(the text that is no call, the calls); all of it is text unless every call is whole and of a known tool."""
    if tools.forced:
        value = _value(text)
        return ("", (_call(tools.forced, value),)) if isinstance(value, dict) else (text, ())
    values: list[Any]
    if OPEN in text:
        before, values = text[: text.index(OPEN)], [_value(one) for one in TAGGED.findall(text)]
    else:
        value = _value(text.strip().removeprefix(MISTRAL))
        before, values = "", value if isinstance(value, list) else [value]
    calls = tuple(call for one in values if (call := _known(one, tools.schemas)) is not None)
    return (before.strip(), calls) if calls and len(calls) == len(values) else (text, ())


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _known(value: Any, names: Collection[str]) -> Call | None:
    if not isinstance(value, dict) or value.get("name") not in names:
        return None
    arguments = value.get("arguments", value.get("parameters"))
    return _call(value["name"], arguments) if isinstance(arguments, dict) else None


def _call(name: str, arguments: dict[str, Any]) -> Call:
    return Call(name=name, arguments=json.dumps(arguments, ensure_ascii=False))
