"""The shipped pipelines on the real server: what a person hears, sees and reads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from clients import Client, Delta, Finished, Heard, Seen, connect
from embedded import EmbeddedServer

pytestmark = pytest.mark.server

RECORDING = Path(__file__).parents[2] / "samples" / "sense_and_sensibility.flac"
PHOTO = Path(__file__).parents[2] / "samples" / "coffee.jpg"
SAID = (
    "And Mr. John Dashwood had then leisure to consider how much there might be prudently in his power to do for them."
)


@pytest.fixture(scope="module")
def client(served: EmbeddedServer) -> Iterator[Client]:
    with connect(f"grpc://{served.grpc}", timeout_s=120) as opened:
        yield opened


@pytest.mark.parametrize("mode", ["exact", "fast"])
def test_transcribe_writes_down_the_shipped_recording(client: Client, mode: str) -> None:
    transcript = client.transcribe(RECORDING, mode=mode)  # type: ignore[arg-type]
    assert transcript.text.strip() == SAID
    assert transcript.language == "en"
    assert transcript.segments[0].start_s == pytest.approx(0.0, abs=0.5)
    assert transcript.segments[-1].end_s == pytest.approx(7.0, abs=0.6)


def test_detect_finds_the_cup_in_the_shipped_photo(client: Client) -> None:
    found = client.detect(PHOTO)
    (cup,) = found.items
    assert (found.width, found.height, cup.label) == (600, 400, "cup")
    assert cup.box == pytest.approx((150, 24, 426, 305), abs=3)


def test_assistant_gives_transcript_and_detections_before_the_first_word(client: Client) -> None:
    events = list(client.ask(RECORDING, PHOTO, "What do you hear and see?", temperature=0.0))
    heard, seen = events[:2]
    assert isinstance(heard, Heard) and heard.transcript.strip() == SAID
    assert isinstance(seen, Seen) and [one.label for one in seen.detections.items] == ["cup"]
    deltas = [event.text for event in events if isinstance(event, Delta)]
    assert len(deltas) > 1
    assert "".join(deltas).strip() == f'I heard "{SAID}" and I see 1 cup.'
    finished = events[-1]
    assert isinstance(finished, Finished) and finished.reason == "stop"
    assert finished.completion_tokens >= len(deltas) > 0 and finished.prompt_tokens > 0


def test_assistant_answers_about_a_recording_alone(client: Client) -> None:
    events = list(client.ask(RECORDING, question="What was said?", temperature=0.0))
    assert isinstance(events[0], Heard) and not any(isinstance(event, Seen) for event in events)
    assert "leisure to consider" in "".join(event.text for event in events if isinstance(event, Delta))


def test_assistant_answers_about_a_photo_alone(client: Client) -> None:
    events = list(client.ask(image=PHOTO, question="What do you see?", temperature=0.0))
    assert isinstance(events[0], Seen) and not any(isinstance(event, Heard) for event in events)
    assert "1 cup" in "".join(event.text for event in events if isinstance(event, Delta))


def test_the_server_says_that_the_assistant_is_decoupled_and_transcribe_is_not(served: EmbeddedServer) -> None:
    """ENS-15."""
    import tritonclient.grpc as triton

    with triton.InferenceServerClient(served.grpc) as raw:
        decoupled = {
            name: raw.get_model_config(name).config.model_transaction_policy.decoupled
            for name in ("assistant", "assistant_audio", "assistant_image", "assistant_text", "transcribe", "detect")
        }
    assert decoupled == {name: name.startswith("assistant") for name in decoupled}
