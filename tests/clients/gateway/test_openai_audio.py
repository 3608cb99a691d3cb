"""Audio, models and boxes through the real `openai` client and plain HTTP, on the real server."""

from __future__ import annotations

import asyncio
import functools
import io
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import openai
import pytest
import soundfile
from gateway_process import Gateway

from embedded import EmbeddedServer

pytestmark = pytest.mark.server

SAID = "and mr john dashwood had then leisure to consider how much there might be prudently in his power to do for them"


@pytest.fixture(scope="module")
def client(gateway: Any) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=gateway.api, api_key="none is asked for", max_retries=0) as one:
        yield one


def plain(text: str) -> str:
    return " ".join(re.sub(r"[^a-z ]", "", text.lower()).split())


def test_a_recording_is_transcribed(client: openai.OpenAI, recording: Path) -> None:
    found = client.audio.transcriptions.create(model="whisper-1", file=recording, language="en")
    assert plain(found.text) == SAID


def test_every_form_tells_the_same_words(client: openai.OpenAI, recording: Path) -> None:
    def transcribed(form: Any) -> Any:
        return client.audio.transcriptions.create(model="transcribe", file=recording, response_format=form)

    assert plain(transcribed("text")) == SAID
    srt, vtt = transcribed("srt"), transcribed("vtt")
    assert srt.startswith("1\n00:00:00,000 --> 00:00:07,000\nAnd Mr. John")
    assert vtt.startswith("WEBVTT\n\n00:00:00.000 --> 00:00:07.000\nAnd Mr. John")
    verbose = transcribed("verbose_json")
    assert verbose.duration == pytest.approx(7.1) and verbose.language == "en"
    assert plain(" ".join(one.text for one in verbose.segments)) == SAID
    assert verbose.segments[0].avg_logprob < 0 <= verbose.segments[0].no_speech_prob


def test_a_long_recording_streams_piece_by_piece(client: openai.OpenAI, recording: Path) -> None:
    samples, rate = soundfile.read(recording, dtype="float32")
    long = io.BytesIO()
    soundfile.write(long, np.tile(samples, 6), rate, format="FLAC")
    stream = client.audio.transcriptions.create(model="transcribe", file=("long.flac", long.getvalue()), stream=True)
    events = list(stream)
    deltas = [event.delta for event in events if event.type == "transcript.text.delta"]
    assert len(deltas) == 2
    assert events[-1].type == "transcript.text.done" and events[-1].text == "".join(deltas)
    assert plain(events[-1].text).count("leisure to consider") == 6


def test_the_asyncio_client_transcribes(gateway: Any, recording: Path) -> None:
    async def ask() -> str:
        async with openai.AsyncOpenAI(base_url=gateway.api, api_key="none", max_retries=0) as client:
            return (await client.audio.transcriptions.create(model="transcribe", file=recording)).text

    assert plain(asyncio.run(ask())) == SAID


@pytest.mark.filterwarnings("ignore:deprecated")  # OpenAI's own client calls this endpoint so
def test_a_translation_is_asked_for_by_the_task(stand_ins: Any, recording: Path) -> None:
    """With a stand-in that tells what it is asked for: the shipped Whisper knows English only, see the next test."""
    gateway = Gateway(stand_ins.grpc)
    try:
        with openai.OpenAI(base_url=gateway.api, api_key="none", max_retries=0) as client:
            found = client.audio.translations.create(model="transcribe", file=recording)
            assert found.text.endswith("translate, exact")
            heard = client.audio.translations.create(model="transcribe", file=recording, response_format="verbose_json")
            assert heard.to_dict()["task"] == "translate" and heard.segments
    finally:
        gateway.stop()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:deprecated")
def test_a_multilingual_checkpoint_translates(checkout: Path, recording: Path, tmp_path: Path) -> None:
    """With the real Whisper base; German is heard where espeak-ng is there to say it."""
    if not (checkout / ".cache" / "exports" / "whisper-base").exists():
        pytest.skip("the checkpoint base is not in the cache; `tritonkit weights --whisper base` brings it")
    built = (
        sys.executable,
        "-m",
        "tritonkit",
        "build",
        "transcribe",
        "--whisper",
        "base",
        "--out",
        str(tmp_path / "r"),
    )
    subprocess.run(built, cwd=checkout, check=True, capture_output=True)
    with EmbeddedServer(tmp_path / "r", load=["transcribe"], cache=checkout / ".cache", cpu_threads=1) as server:
        gateway = Gateway(f"grpc://{server.grpc}")
        try:
            with openai.OpenAI(base_url=gateway.api, api_key="none", max_retries=0) as client:
                ask = functools.partial(client.audio.translations.create, model="transcribe")
                assert "leisure to consider" in plain(ask(file=recording).text)
                if speaker := shutil.which("espeak-ng"):
                    german = tmp_path / "german.wav"
                    said = "Guten Morgen. Ich habe heute sehr viel Zeit."
                    subprocess.run([speaker, "-v", "de", "-s", "130", "-w", str(german), said], check=True)
                    told = ask(file=german, response_format="verbose_json").to_dict()
                    assert (told["task"], told["language"]) == ("translate", "de")
                    assert plain(str(told["text"])) == "good morning i have a lot of time today"
        finally:
            gateway.stop()


def test_a_checkpoint_of_english_says_that_it_cannot_translate(gateway: Any, recording: Path) -> None:
    sent = {"files": {"file": recording.read_bytes()}, "data": {"model": "whisper-1"}}
    answer = httpx.post(f"{gateway.api}/audio/translations", timeout=30, **sent)
    assert answer.status_code == 400 and "knows English only" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"file": ("x.wav", b"no sound at all")}, "no sound file"),
        ({"file": ("x.wav", b"")}, "no sound file"),
        ({"response_format": "pdf"}, "one of json, text"),
        ({"prompt": "Jane Austen"}, "prompt"),
        ({"temperature": 0.5}, "temperature"),
        ({"timestamp_granularities": ["word"], "response_format": "verbose_json"}, "timestamp_granularities"),
        ({"extra_body": {"chunking": "auto"}}, "chunking"),
        ({"language": "klingon"}, "LANGUAGE"),
    ],
)
def test_what_whisper_cannot_do_is_refused_by_name(
    client: openai.OpenAI, recording: Path, changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(openai.BadRequestError, match=words):
        client.audio.transcriptions.create(**{"model": "transcribe", "file": recording, **changes})


def test_the_models_are_listed_with_their_aliases(client: openai.OpenAI) -> None:
    assert [one.id for one in client.models.list()] == [
        "assistant",
        "llm",
        "transcribe",
        "detect",
        "whisper-1",
        "gpt-4o",
    ]
    assert client.models.retrieve("llm").id == "llm"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("gpt-17")


def test_boxes_come_in_pixels_of_the_picture(gateway: Any, picture: Path) -> None:
    answer = httpx.post(f"{gateway.api}/detections", files={"file": picture.read_bytes()}, timeout=30).json()
    assert (answer["width"], answer["height"]) == (600, 400)
    assert [one["label"] for one in answer["detections"]] == ["cup"]
    left, top, right, bottom = answer["detections"][0]["box"]
    assert 100 < left < right < 500 and 0 <= top < bottom <= 400
    surer = httpx.post(
        f"{gateway.api}/detections", files={"file": picture.read_bytes()}, data={"confidence": "0.99"}, timeout=30
    )
    assert surer.json()["detections"] == []


@pytest.mark.parametrize(
    ("file", "data", "words"),
    [
        (b"no picture", {}, "IMAGE"),
        (b"", {}, "IMAGE"),
        (b"x", {"confidence": "2"}, "confidence"),
        (b"x", {"confidence": "nan"}, "confidence"),
        (b"x", {"iou": "much"}, "iou"),
        (b"x", {"colour": "red"}, "colour"),
    ],
)
def test_a_wrong_picture_or_threshold_is_refused_by_name(
    gateway: Any, file: bytes, data: dict[str, str], words: str
) -> None:
    answer = httpx.post(f"{gateway.api}/detections", files={"file": file}, data=data, timeout=30)
    assert answer.status_code == 400
    assert words in answer.json()["error"]["message"]


def test_health_names_the_models(gateway: Any) -> None:
    answer = httpx.get(f"{gateway.url}/health", timeout=30)
    assert answer.status_code == 200 and answer.json()["status"] == "ok"
    assert answer.json()["models"]["llm"] is True


def test_metrics_count_requests_and_tokens(gateway: Any, client: openai.OpenAI) -> None:
    tokens, route = "tritonkit_gateway_tokens_total", 'route="/v1/completions",status="200"'
    before = gateway.metrics()
    usage = client.completions.create(model="llm", prompt="Hello", max_tokens=3).usage
    after = gateway.metrics()

    def more(name: str) -> float:
        return after[name] - before.get(name, 0)

    assert usage and more(f'{tokens}{{kind="prompt"}}') == usage.prompt_tokens
    assert more(f'{tokens}{{kind="completion"}}') == usage.completion_tokens
    assert more(f"tritonkit_gateway_requests_total{{{route}}}") == 1
    assert after["tritonkit_gateway_in_flight"] == 0
