"""/v1/chat/completions: messages in, the next message out; pictures and recordings are looked at and listened to."""

from contextlib import aclosing
from typing import Any

from starlette.responses import Response

from clients.gateway.bodies import ChatBody
from clients.gateway.merge import merged
from clients.gateway.metrics import Metrics
from clients.gateway.problems import invalid
from clients.gateway.replies import EventStream, begun, json_response
from clients.gateway.sampling import sampling_options, seeds
from clients.gateway.settings import Settings
from clients.gateway.turns import Turn, turns_of
from clients.gateway.upstream import Message, Upstream
from clients.gateway.writing import ChatForm, Events, Usage, Writer
from clients.values import Event, Heard, Seen


async def answer_chat(body: ChatBody, upstream: Upstream, settings: Settings, metrics: Metrics) -> Response:
    """The response to one request."""
    check_choices(body.choices, settings)
    options = sampling_options(body.extra, max_tokens=body.limit, stop=body.stop)
    turns = await turns_of(body.messages, settings.max_audio_s)
    events = events_of(turns, seeds(options, body.choices), upstream)
    writer = Writer(ChatForm(), body.model, Usage(answers_per_prompt=body.choices, metrics=metrics))
    if not body.stream:
        return json_response(await writer.whole(events, body.choices))
    return EventStream(await begun(writer.chunks(events, with_usage=body.includes_usage)))


def events_of(turns: list[Turn], options: list[dict[str, Any]], upstream: Upstream) -> Events:
    """The events of all answers.

    One question about a picture or a recording is one call of the pipeline `assistant`. With a history, or several
    answers, the same models are called one after the other: the pipeline knows neither.
    """
    media = [turn for turn in turns if turn.has_media]
    if not media:
        return merged([upstream.chat([turn.message for turn in turns], one) for one in options])
    if len(turns) == 1 and len(options) == 1:
        return merged([upstream.ask(turns[0].audio, turns[0].image, turns[0].text, options[0])])
    return step_by_step(turns, options, upstream)


async def step_by_step(turns: list[Turn], options: list[dict[str, Any]], upstream: Upstream) -> Events:
    """The events of a chat with pictures or recordings in it; what was heard and seen last is told first."""
    messages: list[Message] = []
    noticed: list[Event] = []
    for turn in turns:
        told, found = await told_of(turn, upstream)
        messages += told
        noticed = found or noticed
    for event in noticed:
        yield 0, event
    async with aclosing(merged([upstream.chat(in_order(messages), one) for one in options])) as events:
        async for place, event in events:
            yield place, event


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
