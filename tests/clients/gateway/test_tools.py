"""Tools: what a body may say of them, and calls found in what models write."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from clients.gateway.problems import Problem
from clients.gateway.tool_calls import Call, Called, calls_in, with_calls
from clients.gateway.tools import Tools, tools_of
from clients.values import Delta, Event, Finished

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
RAIN: dict[str, Any] = {"type": "function", "function": {"name": "rain", "parameters": SCHEMA}}
WIND: dict[str, Any] = {"type": "function", "function": {"name": "wind"}}


def tools(**more: Any) -> Tools:
    found = tools_of({"tools": [RAIN, WIND], **more})
    assert found
    return found


def test_nothing_is_asked_for_without_tools() -> None:
    for body in ({}, {"tools": []}, {"tools": None, "tool_choice": "auto"}, {"tools": [RAIN], "tool_choice": "none"}):
        assert tools_of(body) is None and not body


def test_a_choice_binds_the_answer() -> None:
    assert tools().binding() == {}
    assert tools(tool_choice={"type": "function", "function": {"name": "rain"}}).binding() == {"json": SCHEMA}
    bound = tools(tool_choice="required", parallel_tool_calls=False).binding()["json"]
    assert (bound["minItems"], bound["maxItems"]) == (1, 1)
    assert [one["properties"]["name"] for one in bound["items"]["anyOf"]] == [{"enum": ["rain"]}, {"enum": ["wind"]}]


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"tools": "rain"}, "tools"),
        ({"tools": {}, "tool_choice": "auto"}, "tools"),
        ({"tools": [{"type": "web_search"}]}, "tools.0"),
        ({"tools": [RAIN, {"type": "function"}]}, "tools.1"),
        ({"tools": [{"type": "function", "function": {"name": "f", "parameters": []}}, 5]}, "tools.1"),
        ({"tools": [{"type": "function", "function": {"name": "f", "parameters": [1]}}]}, "tools.0"),
        ({"tools": [RAIN], "tool_choice": "any"}, "tool_choice"),
        ({"tools": [RAIN], "tool_choice": {"type": "function", "function": {"name": "wind"}}}, "tool_choice"),
        ({"tools": [RAIN], "tool_choice": {"type": "allowed_tools"}}, "tool_choice"),
        ({"tool_choice": "required"}, "tool_choice"),
    ],
)
def test_what_is_no_tool_is_refused_by_name(body: dict[str, Any], param: str) -> None:
    with pytest.raises(Problem) as caught:
        tools_of(body)
    assert (caught.value.status, caught.value.param) == (400, param)


TAGGED = '<tool_call>\n{"name": "rain", "arguments": {"city": "Rome"}}\n</tool_call>'


@pytest.mark.parametrize(
    ("text", "before", "names"),
    [
        (TAGGED, "", ["rain"]),
        (f"I look it up.\n{TAGGED}\n{TAGGED.replace('rain', 'wind')}", "I look it up.", ["rain", "wind"]),
        (TAGGED.removesuffix("</tool_call>"), "", ["rain"]),  # the end may be a stop text
        ('{"name": "wind", "parameters": {"city": "Rome"}}', "", ["wind"]),
        ('[TOOL_CALLS] [{"name": "rain", "arguments": {"city": "Rome"}}]', "", ["rain"]),
    ],
)
def test_the_forms_of_open_models_are_known(text: str, before: str, names: list[str]) -> None:
    rest, calls = calls_in(text, tools())
    assert (rest, [one.name for one in calls]) == (before, names)
    assert all(json.loads(one.arguments) == {"city": "Rome"} for one in calls)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "It rains.",
        '{"name": "snow", "parameters": {}}',
        '{"name": "rain"}',
        '{"name": "rain", "parameters": "Rome"}',
        '[{"name": "rain", "arguments": {}}, 5]',
        "[1, 2]",
        f"{TAGGED} <tool_call>half",
        "rain(city='Rome')",
    ],
)
def test_anything_else_stays_text(text: str) -> None:
    assert calls_in(text, tools()) == (text, ())


def events(text: str, tools: Tools, step: int) -> list[Event | Called]:
    async def source() -> AsyncGenerator[Event, None]:
        for place in range(0, len(text), step):
            yield Delta(text=text[place : place + step])
        yield Finished(reason="stop", prompt_tokens=1, completion_tokens=2)

    async def collected() -> list[Event | Called]:
        return [event async for event in with_calls(source(), tools)]

    return asyncio.run(collected())


@pytest.mark.parametrize("step", [1, 7, 1000])
@pytest.mark.parametrize("before", ["", "I look it up <b>now</b>: "])
def test_a_stream_never_shows_a_piece_of_a_call(before: str, step: int) -> None:
    *deltas, called, finished = events(before + TAGGED, tools(), step)
    assert "".join(one.text for one in deltas if isinstance(one, Delta)).strip() == before.strip()
    assert isinstance(called, Called) and [one.name for one in called.calls] == ["rain"]
    assert isinstance(finished, Finished) and finished.reason == "tool_calls"


@pytest.mark.parametrize("text", ["It rains <in> Rome <tool", '{"weather": "rain"}', "<tool_call>nothing"])
def test_a_stream_loses_nothing_of_a_text_that_is_no_call(text: str) -> None:
    *deltas, finished = events(text, tools(), 3)
    assert "".join(one.text for one in deltas if isinstance(one, Delta)) == text
    assert isinstance(finished, Finished) and finished.reason == "stop"


def test_text_that_is_no_call_is_streamed_as_it_comes() -> None:
    assert len(events("It rains in Rome, as it often does.", tools(), 5)) == 8


def test_one_call_is_enough_where_only_one_is_wanted() -> None:
    found = events(TAGGED + TAGGED, tools(parallel_tool_calls=False), 9)
    assert [len(one.calls) for one in found if isinstance(one, Called)] == [1]


def test_each_call_has_an_id_of_its_own() -> None:
    assert Call(name="rain", arguments="{}").id != Call(name="rain", arguments="{}").id
