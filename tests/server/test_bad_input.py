"""Whatever a client sends, it gets a right answer or an error that names the input, and the next request works."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import tritonclient.grpc as triton
from PIL import Image
from tritonclient.utils import InferenceServerException

from clients import Client, ClientError, Delta, Finished, Heard, Seen, connect
from embedded import EmbeddedServer

pytestmark = pytest.mark.server

RATE_HZ = 16000
RECORDING = Path(__file__).parents[2] / "samples" / "sense_and_sensibility.flac"
PHOTO = Path(__file__).parents[2] / "samples" / "coffee.jpg"


@pytest.fixture(scope="module")
def client(served: EmbeddedServer) -> Iterator[Client]:
    with connect(f"grpc://{served.grpc}", timeout_s=120) as opened:
        yield opened


@pytest.fixture(scope="module")
def raw(served: EmbeddedServer) -> Iterator[triton.InferenceServerClient]:
    with triton.InferenceServerClient(served.grpc) as opened:
        yield opened


@pytest.fixture(autouse=True)
def next_request_works(request: pytest.FixtureRequest, client: Client) -> Iterator[None]:
    """After each test, the pipeline that got the bad input answers a good one."""
    yield
    if "IMAGE" in request.node.name:
        assert [one.label for one in client.detect(PHOTO).items] == ["cup"]
    elif "AUDIO" in request.node.name:
        assert "leisure" in client.transcribe(RECORDING).text
    else:
        assert list(client.chat("Heard: hello", max_tokens=2))


def infer(raw: triton.InferenceServerClient, model: str, inputs: Sequence[tuple[str, str, np.ndarray]]) -> Any:
    """One plain request; the arrays go as they are."""
    tensors = []
    for name, datatype, array in inputs:
        tensor = triton.InferInput(name, list(array.shape), datatype)
        tensor.set_data_from_numpy(array)
        tensors.append(tensor)
    return raw.infer(model, tensors, client_timeout=120)


def refused(call: Callable[[], Any], *words: str) -> None:
    """The call fails with a message that holds every word."""
    with pytest.raises((ClientError, InferenceServerException)) as caught:
        call()
    missing = [word for word in words if word not in str(caught.value)]
    assert not missing, f"{missing} not in: {caught.value}"


def text(value: bytes) -> np.ndarray:
    return np.array([value], dtype=object)


def png(image: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    data = io.BytesIO()
    image.save(data, format=kind, **options)
    return data.getvalue()


# -- audio -------------------------------------------------------------------------------------------------------------


def test_AUDIO_of_silence_gives_no_words(client: Client) -> None:
    assert client.transcribe(np.zeros(3 * RATE_HZ, np.float32)).text.strip() in ("", "you")


def test_AUDIO_of_noise_is_answered(client: Client) -> None:
    noise = np.random.default_rng(0).normal(0, 0.1, 2 * RATE_HZ).clip(-1, 1).astype(np.float32)
    assert isinstance(client.transcribe(noise).text, str)


def test_AUDIO_without_samples_is_refused(raw: triton.InferenceServerClient) -> None:
    refused(lambda: infer(raw, "transcribe", [("AUDIO", "FP32", np.zeros(0, np.float32))]), "AUDIO", "0 samples")


def test_AUDIO_with_nan_is_refused(raw: triton.InferenceServerClient) -> None:
    samples = np.zeros(RATE_HZ, np.float32)
    samples[77] = np.nan
    refused(lambda: infer(raw, "transcribe", [("AUDIO", "FP32", samples)]), "AUDIO", "77")


def test_AUDIO_of_three_hours_is_refused_with_the_limit(served: EmbeddedServer) -> None:
    samples = np.zeros(3 * 3600 * RATE_HZ, np.float32)
    with connect(f"grpc://{served.grpc}", timeout_s=120, shared_memory=True) as client:
        refused(lambda: client.transcribe(samples), "AUDIO", "10800", "7200")


def test_AUDIO_as_int16_values_in_float32_is_refused(raw: triton.InferenceServerClient) -> None:
    samples = np.full(RATE_HZ, 12000, np.float32)
    refused(lambda: infer(raw, "transcribe", [("AUDIO", "FP32", samples)]), "AUDIO", "12000")


@pytest.mark.parametrize("rate_hz, channels", [(8000, 1), (44100, 2)])
def test_AUDIO_files_of_other_rates_and_channels_are_understood(
    client: Client, tmp_path: Path, rate_hz: int, channels: int
) -> None:
    samples, rate = soundfile.read(RECORDING, dtype="float32")
    there = np.linspace(0, len(samples) - 1, int(len(samples) * rate_hz / rate))
    resampled = np.interp(there, np.arange(len(samples)), samples).astype(np.float32)
    path = tmp_path / "speech.wav"
    soundfile.write(path, np.stack([resampled] * channels, axis=1), rate_hz)
    assert "leisure to consider" in client.transcribe(path).text


def test_AUDIO_of_a_wrong_type_is_refused_by_name(raw: triton.InferenceServerClient) -> None:
    refused(lambda: infer(raw, "transcribe", [("AUDIO", "FP64", np.zeros(RATE_HZ))]), "AUDIO", "FP64", "FP32")


def test_AUDIO_under_a_wrong_name_is_refused_by_name(raw: triton.InferenceServerClient) -> None:
    refused(lambda: infer(raw, "transcribe", [("AUDIOS", "FP32", np.zeros(RATE_HZ, np.float32))]), "AUDIOS")


def test_AUDIO_with_an_unknown_language_is_refused_with_the_known_ones(client: Client) -> None:
    refused(lambda: client.transcribe(RECORDING, language="xx"), "LANGUAGE", "xx", "en")


def test_AUDIO_with_an_unknown_mode_is_refused(raw: triton.InferenceServerClient) -> None:
    samples = np.zeros(RATE_HZ, np.float32)
    refused(
        lambda: infer(raw, "transcribe", [("AUDIO", "FP32", samples), ("MODE", "BYTES", text(b"quick"))]),
        "MODE",
        "quick",
        "fast",
    )


# -- pictures ----------------------------------------------------------------------------------------------------------


def test_IMAGE_of_no_bytes_is_refused(raw: triton.InferenceServerClient) -> None:
    refused(lambda: infer(raw, "detect", [("IMAGE", "UINT8", np.zeros(0, np.uint8))]), "IMAGE", "0 bytes")


def test_IMAGE_that_is_a_truncated_jpeg_is_refused(raw: triton.InferenceServerClient) -> None:
    half = np.frombuffer(PHOTO.read_bytes()[:20000], np.uint8)
    refused(lambda: infer(raw, "detect", [("IMAGE", "UINT8", half)]), "IMAGE", "truncated")


def test_IMAGE_that_is_no_picture_is_refused(raw: triton.InferenceServerClient) -> None:
    words = np.frombuffer(b"this is not a picture at all", np.uint8)
    refused(lambda: infer(raw, "detect", [("IMAGE", "UINT8", words)]), "IMAGE")


def test_IMAGE_of_one_pixel_has_nothing_in_it(client: Client) -> None:
    found = client.detect(png(Image.new("RGB", (1, 1), "red")))
    assert (found.width, found.height, found.items) == (1, 1, ())


def test_IMAGE_of_a_hundred_million_pixels_is_answered(client: Client) -> None:
    with Image.open(PHOTO) as photo:
        large = photo.resize((10000, 10000), Image.Resampling.NEAREST)
    found = client.detect(png(large, "JPEG", quality=60))
    assert (found.width, found.height) == (10000, 10000)


def test_IMAGE_rotated_by_exif_has_boxes_of_the_upright_picture(client: Client) -> None:
    with Image.open(PHOTO) as photo:
        exif = Image.Exif()
        exif[0x0112] = 6  # to be turned by 90 degrees, clockwise
        lying = photo.rotate(90, expand=True)
    upright, turned = client.detect(PHOTO), client.detect(png(lying, "JPEG", quality=95, exif=exif))
    assert (turned.width, turned.height) == (upright.width, upright.height)
    assert [one.label for one in turned.items] == [one.label for one in upright.items]
    assert np.allclose(turned.items[0].box, upright.items[0].box, atol=8)


@pytest.mark.parametrize("mode, kind", [("L", "PNG"), ("RGBA", "PNG"), ("CMYK", "JPEG"), ("P", "PNG")])
def test_IMAGE_in_other_colours_still_shows_the_cup(client: Client, mode: str, kind: str) -> None:
    with Image.open(PHOTO) as photo:
        found = client.detect(png(photo.convert(mode), kind), confidence=0.1)
    assert "cup" in [one.label for one in found.items]


def test_IMAGE_with_a_confidence_out_of_range_is_refused(raw: triton.InferenceServerClient) -> None:
    photo = np.frombuffer(PHOTO.read_bytes(), np.uint8)
    high = np.array([1.5], np.float32)
    refused(
        lambda: infer(raw, "detect", [("IMAGE", "UINT8", photo), ("CONFIDENCE", "FP32", high)]), "CONFIDENCE", "1.5"
    )


# -- words -------------------------------------------------------------------------------------------------------------


def test_an_empty_question_with_audio_and_image_is_answered(client: Client) -> None:
    kinds = [type(event) for event in client.ask(RECORDING, PHOTO, "")]
    assert kinds[:2] == [Heard, Seen] and Delta in kinds and kinds[-1] is Finished


def test_an_empty_question_alone_is_refused(client: Client) -> None:
    refused(lambda: list(client.ask(question="")), "QUESTION")


def test_a_question_of_100_kb_is_refused_with_the_counts(client: Client) -> None:
    refused(lambda: list(client.ask(question="word " * 20000)), "MESSAGES", "2048")


def test_messages_longer_than_the_context_are_refused(client: Client) -> None:
    refused(lambda: list(client.chat("hello " * 5000)), "MESSAGES", "2048")


def test_invalid_utf_8_is_refused_by_name(served: EmbeddedServer) -> None:
    with connect(f"grpc://{served.grpc}") as client:
        refused(lambda: list(client.stream("llm", {"PROMPT": text(b"\xff\xfe\xfa")})), "PROMPT", "UTF-8")


def test_unknown_sampling_parameters_are_refused_by_name(client: Client) -> None:
    refused(lambda: list(client.chat("hello", temprature=0.1)), "temprature", "temperature")
