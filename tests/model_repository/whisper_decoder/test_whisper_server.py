"""The pipeline `transcribe` on the real server, over a checkpoint with random weights."""

import json
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import tritonclient.grpc as triton
from whisper_listening import Listener, tokens_of
from whisper_small import LARGE_V3, Served, small_dimensions

from builder.check import checked_plan
from builder.pipelines.transcribe import transcribe
from builder.repository import write_repository
from embedded import EmbeddedServer
from weights.whisper.export import write_export
from weights.whisper.random_weights import random_checkpoint

CACHE = Path(os.environ.get("TRITONKIT_CACHE", Path(__file__).parents[3] / ".cache"))
pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def export(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("exports") / "whisper-random"
    folder.mkdir()
    write_export(random_checkpoint(small_dimensions(LARGE_V3, 64, n_audio_ctx=1500, n_mels=128), seed=2), folder)
    return folder


@pytest.fixture(scope="module")
def client(export: Path, tmp_path_factory) -> Iterator[triton.InferenceServerClient]:
    repository = tmp_path_factory.mktemp("repository")
    write_repository(checked_plan([transcribe(str(export))]), repository, exports=export.parent)
    with (
        EmbeddedServer(repository, entry=["transcribe"], cache=CACHE, cpu_threads=1) as server,
        triton.InferenceServerClient(server.grpc) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def listener(export: Path) -> Iterator[Listener]:
    with Listener(Served(export)) as listener:
        yield listener


def noise(seconds: float) -> np.ndarray:
    rng = np.random.default_rng(int(10 * seconds))
    n = int(seconds * 16000)
    return (0.2 * rng.standard_normal(n) * np.abs(np.sin(np.arange(n) / 3000))).astype(np.float32)


def inputs_of(samples: np.ndarray, **texts: str) -> list[triton.InferInput]:
    audio = triton.InferInput("AUDIO", list(samples.shape), "FP32")
    audio.set_data_from_numpy(samples)
    inputs = [audio]
    for name, text in texts.items():
        inputs.append(triton.InferInput(name, [1], "BYTES"))
        inputs[-1].set_data_from_numpy(np.array([text.encode()], np.object_))
    return inputs


def said(client: triton.InferenceServerClient, samples: np.ndarray, **texts: str) -> tuple[str, list[int]]:
    """(language, tokens of all segments)."""
    answer = client.infer("transcribe", inputs_of(samples, **texts), client_timeout=60)
    segments = json.loads(answer.as_numpy("SEGMENTS")[0])
    return answer.as_numpy("DETECTED_LANGUAGE")[0].decode(), [token for s in segments for token in s["tokens"]]


def test_requests_at_once_get_what_the_same_code_says_without_a_server(client, listener: Listener) -> None:
    asks = [(seconds, mode) for seconds in (2.0, 35.0, 100.0, 5.0) for mode in ("exact", "fast")]
    with ThreadPoolExecutor(len(asks)) as pool:
        answers = list(pool.map(lambda ask: said(client, noise(ask[0]), MODE=ask[1]), asks))
    for (seconds, mode), (language, tokens) in zip(asks, answers, strict=True):
        job = listener.listen(listener.ask_of(noise(seconds), mode=mode)).result(60)
        assert (language, tokens) == (job.language, tokens_of(job)), (seconds, mode)


def test_a_client_that_goes_away_stops_the_work_for_it(client) -> None:
    """Asked directly: inside an ensemble, Triton tells a cancellation only to steps that have not yet begun."""
    names = ["WINDOWS", "MEL", "SPANS"]
    features = client.infer("whisper_features", inputs_of(noise(600)))
    windows, mel, spans = (features.as_numpy(name) for name in names)
    encoded = client.infer("whisper_encoder", [tensor("mel", windows)]).as_numpy("features")
    inputs = [tensor("FEATURES", encoded), tensor("MEL", mel), tensor("SPANS", spans)]
    before, errors = windows_encoded(client), []

    def take(result, error) -> None:
        errors.append(error)

    call = client.async_infer("whisper_decoder", inputs, callback=take)
    wait_for(lambda: windows_encoded(client) > before + 2)
    call.cancel()
    wait_for(lambda: is_still(lambda: windows_encoded(client)))
    assert windows_encoded(client) < before + 15  # of 20 and more
    assert [type(error).__name__ for error in errors] == ["InferenceServerException"]
    assert said(client, noise(2.0), LANGUAGE="en")[0] == "en"


def tensor(name: str, array: np.ndarray) -> triton.InferInput:
    out = triton.InferInput(name, list(array.shape), {"float32": "FP32", "int32": "INT32"}[array.dtype.name])
    out.set_data_from_numpy(array)
    return out


def windows_encoded(client: triton.InferenceServerClient) -> int:
    stats = client.get_inference_statistics("whisper_encoder", as_json=True)["model_stats"][0]
    return int(stats.get("inference_count", 0))


def is_still(value: Callable[[], int]) -> bool:
    """Whether a number stays the same for a second, in which a window takes a fraction of it."""
    first = value()
    time.sleep(1.0)
    return value() == first


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("samples", "texts", "message"),
    [
        (np.zeros(0, np.float32), {}, "AUDIO: 0 samples"),
        (np.full(100, np.nan, np.float32), {}, "AUDIO: NaN at sample 0"),
        (np.zeros(100, np.float32), {"LANGUAGE": "klingon"}, 'LANGUAGE: "klingon"; one of en, zh'),
        (np.zeros(100, np.float32), {"TASK": "sing"}, 'TASK: "sing"; transcribe or translate'),
    ],
)
def test_wrong_input_is_answered_in_words_and_the_next_request_works(client, samples, texts, message: str) -> None:
    with pytest.raises(Exception, match=message):
        said(client, samples, **texts)
    assert said(client, np.zeros(100, np.float32), LANGUAGE="en") == ("en", [])
