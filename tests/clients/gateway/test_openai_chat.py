"""Chat and completions through the real `openai` client, on the real server."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest

pytestmark = pytest.mark.server

STRANGE = [{"role": "user", "content": "zebra walks under a blue moon and sings"}]  # what the model knows nothing of
NOTHING = [{"role": "user", "content": "Question: What do you hear?"}]
LONG = {"extra_body": {"ignore_eos": True, "min_tokens": 1500}, "max_tokens": 1500}
LONG_S = 5  # four such answers take longer, on any machine that this runs on


@pytest.fixture(scope="module")
def client(gateway: Any) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=gateway.api, api_key="none is asked for", max_retries=0) as one:
        yield one


def image_part(picture: Path) -> dict[str, Any]:
    data = base64.b64encode(picture.read_bytes()).decode()
    return {"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{data}"}}


def audio_part(recording: Path) -> dict[str, Any]:
    data = base64.b64encode(recording.read_bytes()).decode()
    return {"type": "input_audio", "input_audio": {"data": data, "format": "flac"}}


def test_a_chat_is_answered_with_its_usage(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(model="llm", messages=NOTHING, temperature=0)
    choice = answer.choices[0]
    assert choice.message.role == "assistant" and choice.finish_reason == "stop"
    assert "recording" in (choice.message.content or "")
    assert answer.usage and answer.usage.prompt_tokens > 0 and answer.usage.completion_tokens > 0
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


def test_a_streamed_chat_gives_the_same_words_piece_by_piece(client: openai.OpenAI) -> None:
    whole = client.chat.completions.create(model="llm", messages=NOTHING, temperature=0)
    options = {"include_usage": True}
    with client.chat.completions.create(
        model="llm", messages=NOTHING, temperature=0, stream=True, stream_options=options
    ) as stream:
        chunks = list(stream)
    text = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
    assert "".join(text) == whole.choices[0].message.content
    assert sum(bool(piece) for piece in text) > 1
    assert [chunk.usage for chunk in chunks][:-1] == [None] * (len(chunks) - 1)
    assert chunks[-1].usage == whole.usage and chunks[-1].choices == []
    assert chunks[-2].choices[0].finish_reason == "stop"


def test_usage_is_left_out_of_a_stream_that_did_not_ask(client: openai.OpenAI) -> None:
    with client.chat.completions.create(model="llm", messages=NOTHING, stream=True, max_tokens=2) as stream:
        assert all(chunk.usage is None and chunk.choices for chunk in stream)


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_the_longest_answer_is_kept_under_both_names(client: openai.OpenAI, name: str) -> None:
    answer = client.chat.completions.create(model="llm", messages=NOTHING, **{name: 3})
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage and answer.usage.completion_tokens == 3


def test_a_stop_text_ends_the_answer_and_is_not_part_of_it(client: openai.OpenAI) -> None:
    whole = client.chat.completions.create(model="llm", messages=NOTHING, temperature=0).choices[0].message.content
    assert whole
    word = whole.split()[2]
    answer = client.chat.completions.create(model="llm", messages=NOTHING, temperature=0, stop=[word])
    assert answer.choices[0].message.content == whole.partition(word)[0]
    assert answer.choices[0].finish_reason == "stop"


def test_a_seed_repeats_several_different_answers(client: openai.OpenAI) -> None:
    def answers() -> list[str | None]:
        found = client.chat.completions.create(
            model="llm", messages=STRANGE, temperature=2, seed=50, n=8, max_tokens=24
        )
        assert [choice.index for choice in found.choices] == list(range(8))
        return [choice.message.content for choice in found.choices]

    first = answers()
    assert first == answers()
    assert len(set(first)) > 1, "every answer must have a seed of its own"


def test_streamed_choices_keep_their_place(client: openai.OpenAI) -> None:
    whole = client.chat.completions.create(model="llm", messages=STRANGE, temperature=2, seed=50, n=3, max_tokens=24)
    texts = ["", "", ""]
    with client.chat.completions.create(
        model="llm", messages=STRANGE, temperature=2, seed=50, n=3, max_tokens=24, stream=True
    ) as stream:
        for chunk in stream:
            texts[chunk.choices[0].index] += chunk.choices[0].delta.content or ""
    assert texts == [choice.message.content for choice in whole.choices]


def test_the_likelihood_of_each_token_is_told(client: openai.OpenAI) -> None:
    """CLI-10."""
    options: dict[str, Any] = {"temperature": 0, "logprobs": True, "top_logprobs": 3}
    choice = client.chat.completions.create(model="llm", messages=NOTHING, **options).choices[0]
    assert choice.logprobs and choice.logprobs.content
    tokens = choice.logprobs.content
    assert "".join(one.token for one in tokens).strip() == (choice.message.content or "").strip()
    assert all(len(one.top_logprobs) == 3 and one.top_logprobs[0].logprob == one.logprob <= 0 for one in tokens)
    with client.chat.completions.create(model="llm", messages=NOTHING, stream=True, **options) as stream:
        found = [chunk.choices[0].logprobs for chunk in stream]
    assert [one.token for each in found if each for one in each.content or ()] == [one.token for one in tokens]


def test_the_likelihoods_of_a_completion_have_places_in_the_text(client: openai.OpenAI) -> None:
    prompt = "Question: What do you hear?\nAnswer:\n"
    choice = client.completions.create(model="llm", prompt=prompt, temperature=0, max_tokens=5, logprobs=2).choices[0]
    found = choice.logprobs
    assert found and found.tokens and found.text_offset and found.top_logprobs
    assert "".join(found.tokens) == choice.text and found.text_offset[:2] == [0, len(found.tokens[0])]
    assert all(
        max(top.values()) == sure for top, sure in zip(found.top_logprobs, found.token_logprobs or [], strict=True)
    )


def test_a_json_schema_binds_the_answer(client: openai.OpenAI) -> None:
    schema = {"enum": ["red", "blue"]}  # no place for spaces, of which a small model would write any number
    wanted = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    answer = client.chat.completions.create(model="llm", messages=NOTHING, response_format=wanted, temperature=0)
    assert json.loads(answer.choices[0].message.content or "") in ("red", "blue")


def test_a_picture_and_a_recording_come_into_the_answer(client: openai.OpenAI, picture: Path, recording: Path) -> None:
    content = [
        {"type": "text", "text": "What do you hear and see?"},
        image_part(picture),
        audio_part(recording),
    ]
    answer = client.chat.completions.create(
        model="assistant", messages=[{"role": "user", "content": content}], temperature=0
    )
    text = answer.choices[0].message.content or ""
    assert "cup" in text and "Dashwood" in text
    noticed = answer.to_dict()["tritonkit"]
    assert "leisure to consider" in noticed["transcript"]
    assert [one["label"] for one in noticed["detections"]["detections"]] == ["cup"]


def test_what_was_seen_is_told_before_the_first_word(client: openai.OpenAI, picture: Path) -> None:
    content = [{"type": "text", "text": "What do you see?"}, image_part(picture)]
    with client.chat.completions.create(
        model="assistant", messages=[{"role": "user", "content": content}], temperature=0, stream=True
    ) as stream:
        chunks = [chunk.to_dict() for chunk in stream]
    assert chunks[0]["tritonkit"]["detections"]["detections"][0]["label"] == "cup"
    assert chunks[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert "cup" in "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks)


def test_a_picture_in_a_chat_with_a_history_is_seen_too(client: openai.OpenAI, picture: Path) -> None:
    messages: list[Any] = [
        {"role": "developer", "content": "Be short."},
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": [{"type": "text", "text": "What do you see?"}, image_part(picture)]},
    ]
    answer = client.chat.completions.create(model="assistant", messages=messages, temperature=0, n=2, logprobs=True)
    assert all("cup" in (choice.message.content or "") for choice in answer.choices)
    assert all(choice.logprobs and choice.logprobs.content for choice in answer.choices)
    assert answer.to_dict()["tritonkit"]["detections"]["width"] == 600


def test_prompts_are_completed_each_in_its_place(client: openai.OpenAI) -> None:
    prompts = ["Question: What do you hear?\nAnswer:\n", "Seen: 1 cup\nQuestion: What do you see?\nAnswer:\n"]
    answer = client.completions.create(model="llm", prompt=prompts, temperature=0, n=2, max_tokens=40)
    texts = [choice.text for choice in sorted(answer.choices, key=lambda choice: choice.index)]
    assert texts[0] == texts[1] and texts[2] == texts[3]
    assert "recording" in texts[0] and "cup" in texts[2]


def test_a_streamed_completion(client: openai.OpenAI) -> None:
    prompt = "Question: What do you hear?\nAnswer:\n"
    whole = client.completions.create(model="llm", prompt=prompt, temperature=0, max_tokens=40)
    with client.completions.create(model="llm", prompt=prompt, temperature=0, max_tokens=40, stream=True) as stream:
        chunks = list(stream)
    assert "".join(chunk.choices[0].text for chunk in chunks) == whole.choices[0].text
    assert chunks[-1].choices[0].finish_reason == whole.choices[0].finish_reason == "stop"


def test_the_asyncio_client_asks_many_at_once(gateway: Any) -> None:
    async def ask_all() -> list[str | None]:
        async with openai.AsyncOpenAI(base_url=gateway.api, api_key="none", max_retries=0) as client:
            asked = [client.chat.completions.create(model="llm", messages=NOTHING, temperature=0) for _ in range(8)]
            return [answer.choices[0].message.content for answer in await asyncio.gather(*asked)]

    answers = asyncio.run(ask_all())
    assert len(set(answers)) == 1 and "recording" in (answers[0] or "")


def test_the_asyncio_client_streams(gateway: Any) -> None:
    async def ask() -> str:
        async with openai.AsyncOpenAI(base_url=gateway.api, api_key="none", max_retries=0) as client:
            stream = await client.chat.completions.create(model="gpt-4o", messages=NOTHING, temperature=0, stream=True)
            return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])

    assert "recording" in asyncio.run(ask())


@pytest.mark.parametrize(
    ("changes", "code", "words"),
    [
        ({"model": "gpt-17"}, "model_not_found", "llm"),
        ({"logprobs": True, "top_logprobs": 21}, "invalid_value", "top_logprobs"),
        ({"top_logprobs": 2}, "invalid_value", "top_logprobs"),
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "invalid_value", "does not use tools"),
        ({"tools": [{"type": "function"}]}, "invalid_value", "tools.0"),
        ({"functions": [{"name": "f"}]}, "unsupported_parameter", "functions"),
        ({"temperature": -1}, "invalid_value", "temperature"),
        ({"extra_body": {"tempature": 1}}, "invalid_value", "did you mean temperature"),
        ({"messages": []}, "invalid_value", "messages"),
        ({"max_tokens": 0}, "invalid_value", "max_tokens"),
        ({"n": 1000}, "invalid_value", "n"),
        ({"stop": ["a", "b", "c", "d", "e"]}, "invalid_value", "stop"),
        ({"messages": [{"role": "user", "content": "word " * 3000}]}, "invalid_value", "shorten the text"),
        (
            {
                "messages": [
                    {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://a/b.png"}}]}
                ]
            },
            "unsupported_parameter",
            "not fetched",
        ),
        (
            {
                "messages": [
                    {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:a;base64,QUJD"}}]}
                ]
            },
            "invalid_value",
            "IMAGE",
        ),
    ],
)
def test_what_cannot_be_done_is_refused_by_name(
    client: openai.OpenAI, changes: dict[str, Any], code: str, words: str
) -> None:
    with pytest.raises((openai.BadRequestError, openai.NotFoundError)) as caught:
        client.chat.completions.create(**{"model": "llm", "messages": NOTHING, **changes})
    assert caught.value.code == code
    assert words in caught.value.message


@pytest.mark.timing
def test_a_closed_stream_stops_the_engine(client: openai.OpenAI, engine: Any) -> None:
    stream = client.chat.completions.create(model="llm", messages=NOTHING, stream=True, n=4, **LONG)
    began = time.monotonic()
    next(iter(stream))
    engine.wait_until_busy()
    stream.close()
    engine.wait_until_idle(LONG_S - (time.monotonic() - began))


@pytest.mark.timing
def test_a_closed_stream_of_a_pipeline_stops_the_engine(client: openai.OpenAI, engine: Any, picture: Path) -> None:
    content = [{"type": "text", "text": "What do you see?"}, image_part(picture)]
    asked = {"model": "assistant", "messages": [{"role": "user", "content": content}], "stream": True, **LONG}
    streams = [client.chat.completions.create(**asked) for _ in range(4)]
    for stream in streams:
        next(stream), next(stream)
    engine.wait_until_busy()
    began = time.monotonic()
    for stream in streams:
        stream.close()
    engine.wait_until_idle(LONG_S / 2 - (time.monotonic() - began))


@pytest.mark.timing
def test_a_caller_that_goes_away_from_a_whole_answer_stops_the_engine(gateway: Any, engine: Any) -> None:
    label = 'tritonkit_gateway_requests_total{route="/v1/chat/completions",status="499"}'
    before = gateway.metrics().get(label, 0)
    began = time.monotonic()
    with (
        openai.OpenAI(base_url=gateway.api, api_key="none", max_retries=0, timeout=1) as hasty,
        pytest.raises(openai.APITimeoutError),
    ):
        hasty.chat.completions.create(model="llm", messages=NOTHING, n=4, **LONG)
    engine.wait_until_idle(LONG_S - (time.monotonic() - began))
    assert gateway.metrics()[label] == before + 1
