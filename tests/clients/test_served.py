"""The clients on the shipped pipelines with their real weights."""

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import soundfile
import soxr

from clients import Client, Finished, Heard, RequestRejected, Seen, connect

pytestmark = pytest.mark.server
SAID = (
    "And Mr. John Dashwood had then leisure to consider how much there might be prudently in his power to do for them."
)


@pytest.fixture
def recording(checkout: Path) -> Path:
    return checkout / "samples" / "sense_and_sensibility.flac"


@pytest.fixture
def photo(checkout: Path) -> Path:
    return checkout / "samples" / "coffee.jpg"


@pytest.fixture(params=["grpc", "grpc, shared memory", "http"])
def client(served: Any, request: pytest.FixtureRequest) -> Iterator[Client]:
    scheme = request.param[:4]
    url = f"{scheme}://{getattr(served, scheme)}"
    with connect(url, timeout_s=120, shared_memory="shared" in request.param) as client:
        yield client


def test_every_way_gives_the_same_transcript_and_boxes(client: Client, recording: Path, photo: Path) -> None:
    transcript = client.transcribe(recording)
    assert (transcript.text, transcript.language) == (SAID, "en")
    assert transcript.segments[-1].end_s == pytest.approx(7.0, abs=0.2)
    (cup,) = client.detect(photo).items
    assert cup.label == "cup"
    assert cup.box == pytest.approx((150, 24, 426, 305), abs=3)


def test_ask_hears_sees_and_answers(client: Client, recording: Path, photo: Path) -> None:
    heard, seen, *deltas, finished = client.ask(recording, photo, "What is there?", max_tokens=12, temperature=0)
    assert isinstance(heard, Heard) and heard.transcript == SAID
    assert isinstance(seen, Seen) and [one.label for one in seen.detections.items] == ["cup"]
    assert isinstance(finished, Finished) and finished.completion_tokens <= 12
    assert deltas and finished.prompt_tokens > 0


@pytest.fixture
def plain(served: Any) -> Iterator[Client]:
    with connect(f"grpc://{served.grpc}", timeout_s=120) as client:
        yield client


def as_mp3(samples: np.ndarray) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, samples, 16000, format="MP3")
    return file.getvalue()


@pytest.mark.parametrize(
    "made",
    [
        as_mp3,
        lambda samples: (samples * 32767).astype(np.int16),
        lambda samples: np.stack([samples, samples], axis=1).astype(np.float64),
    ],
    ids=["mp3", "int16", "stereo float64"],
)
def test_sound_in_other_forms_says_the_same(plain: Client, recording: Path, made: Callable[..., Any]) -> None:
    samples, _ = soundfile.read(recording, dtype="float32")
    assert plain.transcribe(made(samples)).text == SAID


def test_sound_of_another_rate_says_the_same(plain: Client, recording: Path) -> None:
    samples, _ = soundfile.read(recording, dtype="float32")
    assert plain.transcribe(soxr.resample(samples, 16000, 44100), sample_rate_hz=44100).text == SAID


def test_what_the_server_refuses_keeps_its_words_and_the_next_request_works(plain: Client, photo: Path) -> None:
    refused: list[tuple[Callable[[], object], str]] = [
        (lambda: plain.transcribe(np.zeros(0, np.float32)), "AUDIO: 0 samples"),
        (lambda: plain.transcribe(np.full(9, np.nan, np.float32)), "AUDIO: NaN"),
        (lambda: plain.detect(b""), "IMAGE: 0 bytes"),
        (lambda: plain.detect(photo.read_bytes()[:5000]), "IMAGE: "),
        (lambda: plain.detect(photo, confidence=3), "CONFIDENCE: "),
        (lambda: list(plain.chat("Hi", top_q=1)), "SAMPLING_PARAMETERS: unknown top_q"),
        (lambda: list(plain.chat("word " * 5000)), "MESSAGES: "),
        (lambda: list(plain.ask(np.zeros(0, np.float32), photo, "What?")), "AUDIO: 0 samples"),
        (lambda: list(plain.ask(question="")), "QUESTION: "),
    ]
    for call, words in refused:
        with pytest.raises(RequestRejected, match=words):
            call()
    assert plain.detect(photo).items
    assert isinstance(list(plain.chat("Hi", max_tokens=2))[-1], Finished)


@pytest.mark.slow
def test_refusals_by_either_branch_cost_neither_the_server_nor_memory(served: Any, plain: Client, photo: Path) -> None:
    """With both branches begun by the request Triton 2.51 ended within 30 of these, or kept 1.6 MB of each."""
    silence, sound, broken = np.zeros(0, np.float32), np.ones(16000, np.float32), photo.read_bytes()[:5000]
    memory = []
    for _ in range(30):
        for audio, image, words in ((silence, photo, "AUDIO: 0 samples"), (sound, broken, "IMAGE: ")):
            with pytest.raises(RequestRejected, match=words):
                list(plain.ask(audio, image, "What?"))
        memory.append(psutil.Process(served.server_pid()).memory_info().rss)
    assert memory[-1] - memory[9] < 20 * 500_000
    assert plain.detect(photo).items


def test_a_plain_infer_gives_the_arrays(plain: Client, photo: Path) -> None:
    outputs = plain.infer("detect", {"IMAGE": np.fromfile(photo, dtype=np.uint8)})
    assert outputs["BOXES"].shape == (1, 4)
    assert outputs["LABELS"].tolist() == [b"cup"]
    assert json.loads(outputs["DETECTIONS"][0])["width"] == 600
