"""Tools by the real `openai` client, through the gateway, on a model whose chat template takes them.

The shipped model's does not. The small Llama knows nothing of tools either: its calls are right only where they are
bound to be, which is what is asked of it here.
"""

import json
import sys
import time
from typing import Any

import openai
import pytest
from llm_serving import ROOT, Llm

sys.path.insert(0, str(ROOT / "tests" / "clients" / "gateway"))

from gateway_process import Gateway

TEMPLATE = """\
{{- bos_token -}}
{%- if tools %}{{ tools | tojson }}{{ "\\n" }}{% endif -%}
{%- for one in messages -%}
{{ one.role }}: {{ one.content }}{{ "\\n" }}
{%- for call in one.tool_calls %}{{ call.function.arguments.city }}{% endfor -%}
{%- endfor -%}
"""
WITHOUT_SPACES = {
    "structured_outputs_config": {"backend": "xgrammar", "disable_any_whitespace": True}
}  # it would write nothing but spaces
ASKED: list[Any] = [{"role": "user", "content": "Which weather?"}]
SCHEMA = {
    "type": "object",
    "properties": {"city": {"enum": ["Rome", "Oslo"]}},
    "required": ["city"],
    "additionalProperties": False,
}
TOOLS: list[Any] = [{"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in ("rain", "wind")]


def check_tools(llm: Llm) -> None:
    gateway = Gateway(f"grpc://{llm.address}")
    try:
        with openai.OpenAI(base_url=gateway.api, api_key="none", max_retries=0) as client:
            the_template_is_given_tools(client)
            a_chosen_tool_is_called(client)
            some_tool_is_called_when_one_must_be(client)
            what_came_of_a_call_is_told(client)
    finally:
        gateway.stop()


def check_that_it_ends_to_take_requests(llm: Llm) -> None:
    """16 times as many as the engine works on at once are taken; more are told so at once."""
    most, too_many = 16 * 2, 5
    stream, refused = llm.stream(), []
    for _ in range(most + too_many):
        stream.send(PROMPT="Hello", SAMPLING_PARAMETERS='{"ignore_eos": true, "max_tokens": 1000}')
    while len(refused) < too_many:
        _, error = stream.responses.get(timeout=30)
        refused += [] if error is None else [error.message()]
    assert all("llm: too many requests: 32 are being answered or wait" in one for one in refused)
    stream.close(cancel=True)
    end = time.monotonic() + 20
    while llm.ask(PROMPT="Hello", SAMPLING_PARAMETERS='{"max_tokens": 1}')[-1].error:
        assert time.monotonic() < end, "those that went away still keep others out"
        time.sleep(0.1)


def ask(client: openai.OpenAI, messages: list[Any] = ASKED, **options: Any) -> Any:
    return client.chat.completions.create(**{"model": "llm", "messages": messages, "max_tokens": 120, **options})


def the_template_is_given_tools(client: openai.OpenAI) -> None:
    without, with_tools = ask(client), ask(client, tools=TOOLS)
    assert with_tools.usage.prompt_tokens > without.usage.prompt_tokens + 20
    assert with_tools.choices[0].message.tool_calls is None, "what it wrote is no call"
    assert ask(client, tools=TOOLS, tool_choice="none").usage == without.usage
    with pytest.raises(openai.BadRequestError, match="does not use enable_thinking"):
        ask(client, extra_body={"chat_template_kwargs": {"enable_thinking": False}})


def a_chosen_tool_is_called(client: openai.OpenAI) -> None:
    options: Any = {"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "wind"}}}
    choice = ask(client, **options).choices[0]
    (call,) = choice.message.tool_calls
    assert (choice.message.content, choice.finish_reason, call.function.name) == (None, "stop", "wind")
    assert json.loads(call.function.arguments)["city"] in ("Rome", "Oslo")
    with ask(client, **options, stream=True) as stream:
        deltas = [chunk.choices[0].delta for chunk in stream]
    (streamed,) = [one for delta in deltas for one in delta.tool_calls or ()]
    assert streamed.index == 0 and streamed.function
    assert (streamed.function.name, streamed.function.arguments) == ("wind", call.function.arguments)
    assert not any(delta.content for delta in deltas)


def some_tool_is_called_when_one_must_be(client: openai.OpenAI) -> None:
    options: Any = {"tools": TOOLS, "tool_choice": "required", "parallel_tool_calls": False}
    choice = ask(client, **options).choices[0]
    (call,) = choice.message.tool_calls
    assert choice.finish_reason == "tool_calls" and call.function.name in ("rain", "wind")
    assert json.loads(call.function.arguments)["city"] in ("Rome", "Oslo")


def what_came_of_a_call_is_told(client: openai.OpenAI) -> None:
    function = {"name": "wind", "arguments": '{"city": "Rome"}'}
    calls = [{"id": "call_1", "type": "function", "function": function}]
    told = [
        *ASKED,
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "call_1", "content": "A breeze."},
    ]
    assert ask(client, told).usage.prompt_tokens > ask(client).usage.prompt_tokens
    calls[0]["function"] = {"name": "wind", "arguments": "no json"}
    with pytest.raises(openai.BadRequestError, match=r"messages\.1\.tool_calls"):
        ask(client, told)
