"""/v1/chat/completions: messages in, the next message out; pictures and recordings are looked at and listened to."""

from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from clients.gateway.bodies import ChatBody
from clients.gateway.likelihoods import wanted_in_chat
from clients.gateway.merge import merged
from clients.gateway.metrics import Metrics
from clients.gateway.problems import invalid
from clients.gateway.replies import EventStream, begun, json_response
from clients.gateway.sampling import sampling_options, seeds
from clients.gateway.settings import Settings
from clients.gateway.tool_calls import with_calls
from clients.gateway.tools import Tools, tools_of
from clients.gateway.turns import Turn, turns_of
from clients.gateway.upstream import Message, Upstream
from clients.gateway.writing import ChatForm, Events, Usage, Writer
from clients.values import Event, Heard, Seen

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """How a chat is to be answered.

    Attributes:
        options: SAMPLING_PARAMETERS of each answer.
        arguments: what the chat template is told besides the messages.
        tools: whose calls are looked for in the answers.
    """

    options: list[Json]
    arguments: Json
    tools: Tools | None = None


async def answer_chat(body: ChatBody, upstream: Upstream, settings: Settings, metrics: Metrics) -> Response:
    """The response to one request."""
    body.check_stream_options()
    check_choices(body.choices, settings)
    wish = wish_of(body)
    turns = await turns_of(body.messages, settings.max_audio_s)
    events = events_of(turns, wish, upstream)
    form = ChatForm(top=wish.options[0].get("logprobs", 0))
    writer = Writer(form, body.model, Usage(answers_per_prompt=body.choices, metrics=metrics))
    if not body.stream:
        return json_response(await writer.whole(events, body.choices))
    return EventStream(await begun(writer.chunks(events, with_usage=body.includes_usage)))


def wish_of(body: ChatBody) -> Wish:
    """What the parameters of a body ask for.

    Raises:
        Problem: one of them can't be honoured.
    """
    extra = body.extra
    tools, logprobs = tools_of(extra), wanted_in_chat(extra)
    arguments = template_arguments(extra.pop("chat_template_kwargs", None), tools)
    options = {**sampling_options(extra, max_tokens=body.limit, stop=body.stop), **logprobs}
    binding = tools.binding() if tools else {}
    if binding and "structured_outputs" in options:
        raise invalid("tool_choice", "a call must be made", "no response_format is possible with it")
    if binding:
        options["structured_outputs"] = binding
    return Wish(options=seeds(options, body.choices), arguments=arguments, tools=tools)


def template_arguments(given: Any, tools: Tools | None) -> Json:
    """TEMPLATE_ARGUMENTS of the model."""
    if given is not None and not isinstance(given, dict):
        raise invalid("chat_template_kwargs", f"a {type(given).__name__}", "an object is needed")
    return {**(given or {}), **({"tools": list(tools.definitions)} if tools else {})}


def events_of(turns: list[Turn], wish: Wish, upstream: Upstream) -> Events:
    """The events of all answers.

    One question about a picture or a recording is one call of the pipeline `assistant`. With a history, several
    answers, tools or log probabilities, the same models are called one after the other: the pipeline knows none of
    these.
    """
    if not any(turn.has_media for turn in turns):
        return written([turn.message for turn in turns], wish, upstream)
    is_plain = not wish.arguments and "logprobs" not in wish.options[0]
    if len(turns) == 1 and len(wish.options) == 1 and is_plain:
        return merged([upstream.ask(turns[0].audio, turns[0].image, turns[0].text, wish.options[0])])
    return step_by_step(turns, wish, upstream)


def written(messages: list[Message], wish: Wish, upstream: Upstream) -> Events:
    """The events of all answers to a chat of text."""
    answers = [upstream.chat(messages, one, wish.arguments) for one in wish.options]
    tools = wish.tools
    return merged(answers if tools is None else [with_calls(one, tools) for one in answers])


async def step_by_step(turns: list[Turn], wish: Wish, upstream: Upstream) -> Events:
    """The events of a chat with pictures or recordings in it; what was heard and seen last is told first."""
    messages: list[Message] = []
    noticed: list[Event] = []
    for turn in turns:
        told, found = await told_of(turn, upstream)
        messages += told
        noticed = found or noticed
    for event in noticed:
        yield 0, event
    async with aclosing(written(in_order(messages), wish, upstream)) as events:
        async for answered in events:
            yield answered


async def told_of(turn: Turn, upstream: Upstream) -> tuple[list[Message], list[Event]]:
    """The turn as messages of text, and what was heard and seen for it."""
    if not turn.has_media:
        return [turn.message], []
    heard = None if turn.audio is None else await upstream.transcribe(turn.audio)
    seen = None if turn.image is None else await upstream.detect(turn.image)
    noticed: list[Event] = []
    if heard is not None:
        noticed.append(Heard(transcript=heard.text))
    if seen is not None:
        noticed.append(Seen(detections=seen))
    return await upstream.prompt(heard, seen, turn.text), noticed


def in_order(messages: list[Message]) -> list[Message]:
    """System messages become one, in front, as most chat templates want it."""
    system = list(dict.fromkeys(str(one["content"]) for one in messages if one["role"] == "system"))
    rest = [one for one in messages if one["role"] != "system"]
    return [{"role": "system", "content": "\n".join(system)}, *rest] if system else rest


def check_choices(count: int, settings: Settings) -> None:
    """Raises Problem for more answers than one request may ask for."""
    if count > settings.most_choices:
        raise invalid("n", f"{count} answers", f"{settings.most_choices} are the most of one request")
