"""The two model.py without a server: features, then the decoder, which asks the encoder for further windows."""

import json
import threading
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
import whisper
from whisper_listening import package_s_tokens
from whisper_small import LARGE_V3, small_dimensions

from builder.check import checked_plan
from builder.pipelines.transcribe import transcribe
from builder.repository import write_repository
from tritonkit.testing import LoadError, Model, ModelError, load_model, on_gpu
from weights.whisper.checkpoint import reference_network
from weights.whisper.description import tokenizer_of
from weights.whisper.export import write_export
from weights.whisper.random_weights import random_checkpoint

DIMENSIONS = small_dimensions(LARGE_V3, 64, n_audio_ctx=1500, n_mels=128)
CHECKPOINT = random_checkpoint(DIMENSIONS, seed=2)


@pytest.fixture(scope="module")
def repository(tmp_path_factory) -> Path:
    """`transcribe` and `transcribe_stream` over a checkpoint with random weights, as the builder writes them."""
    folder = tmp_path_factory.mktemp("exports") / "whisper-random"
    folder.mkdir()
    write_export(CHECKPOINT, folder)
    out = tmp_path_factory.mktemp("repository")
    pipelines = [transcribe(str(folder)), transcribe(str(folder), streams="yes")]
    write_repository(checked_plan(pipelines), out, exports=folder.parent)
    return out


class Encoder:
    """Answers the decoder's requests to whisper_encoder; can be told to fail or to wait."""

    def __init__(self, path: Path) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.batches: list[int] = []
        self.error: str | None = None
        self.gate = threading.Event()
        self.gate.set()

    def __call__(self, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        self.batches.append(len(arrays["mel"]))
        self.gate.wait(30)
        if self.error:
            raise ModelError(self.error)
        return {"features": self._session.run(None, {"mel": arrays["mel"]})[0]}


@pytest.fixture
def encoder(repository: Path) -> Encoder:
    return Encoder(repository / "whisper_encoder" / "1" / "model.onnx")


@pytest.fixture
def features(repository: Path):
    with load_model(repository / "whisper_features") as model:
        yield model


@pytest.fixture
def decoder(repository: Path, encoder: Encoder):
    parameters = {"intra_op_thread_count": "1"}
    with load_model(
        repository / "whisper_decoder", models={"whisper_encoder": encoder}, parameters=parameters, timeout_s=60
    ) as model:
        yield model


def noise(seconds: float) -> np.ndarray:
    rng = np.random.default_rng(int(10 * seconds))
    n = int(seconds * 16000)
    return (0.2 * rng.standard_normal(n) * np.abs(np.sin(np.arange(n) / 3000))).astype(np.float32)


def heard(features: Model, encoder: Encoder, samples: np.ndarray, **texts: str) -> dict:
    """What the decoder is sent for some samples."""
    given = features.infer({"AUDIO": samples, **({"MODE": texts["MODE"]} if "MODE" in texts else {})})
    features_ = encoder({"mel": given["WINDOWS"]})["features"]
    encoder.batches.clear()
    return {"FEATURES": features_, "MEL": given["MEL"], "SPANS": given["SPANS"], **texts}


def text(answer: dict, name: str) -> str:
    return answer[name][0].decode("utf-8")


# whisper_features


@pytest.mark.parametrize(("mode", "windows", "spans"), [(None, 1, 1), ("exact", 1, 1), ("fast", 8, 10)])
def test_features_are_windows_mel_and_spans(features: Model, mode: str | None, windows: int, spans: int) -> None:
    answer = features.infer({"AUDIO": noise(280), "MODE": mode})
    assert answer["WINDOWS"].shape == (windows, 128, 3000)
    assert answer["MEL"].shape == (128, 28000)
    assert answer["SPANS"].shape == (spans, 2)
    frames = answer["SPANS"][0, 1]
    np.testing.assert_array_equal(answer["WINDOWS"][0][:, :frames], answer["MEL"][:, :frames])
    assert answer["SPANS"][-1].sum() == (28000 if mode == "fast" else 3000)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"AUDIO": np.zeros(0, np.float32)}, "AUDIO: 0 samples; at least 1 is needed"),
        ({"AUDIO": np.full(9, np.nan, np.float32)}, "AUDIO: NaN at sample 0"),
        ({"AUDIO": np.full(9, 2e4, np.float32)}, "AUDIO: values up to 20000; -1 to 1 is expected"),
        ({"AUDIO": np.zeros(9, np.float32), "MODE": "slow"}, 'MODE: "slow"; exact or fast is expected'),
    ],
)
def test_wrong_audio_is_the_client_s_error_and_the_next_request_works(features: Model, inputs, message: str) -> None:
    with pytest.raises(ModelError, match=message) as raised:
        features.infer(inputs)
    assert raised.value.code == "INVALID_ARG"
    assert features.infer({"AUDIO": np.zeros(1600, np.float32)})["MEL"].shape == (128, 10)


def test_the_longest_recording_is_a_parameter(repository: Path) -> None:
    with load_model(repository / "whisper_features", parameters={"max_audio_seconds": "2"}) as model:
        model.infer({"AUDIO": np.zeros(32000, np.float32)})
        with pytest.raises(ModelError, match="AUDIO: 2.1 s; at most 2 s are taken here"):
            model.infer({"AUDIO": np.zeros(33600, np.float32)})


# whisper_decoder


@pytest.mark.parametrize(("language", "task"), [("", ""), ("french", "translate")])
def test_the_decoder_says_what_the_package_says(
    features: Model, encoder: Encoder, decoder: Model, language: str, task: str
) -> None:
    torch.set_num_threads(1)
    tokenizer_of(DIMENSIONS)
    samples = noise(31.5)
    expected = whisper.transcribe(
        reference_network(CHECKPOINT), samples, temperature=0, fp16=False, language=language or None,
        task=task or "transcribe",
    )  # fmt: skip
    answer = decoder.infer(heard(features, encoder, samples, LANGUAGE=language, TASK=task))
    segments = json.loads(text(answer, "SEGMENTS"))
    assert [token for segment in segments for token in segment["tokens"]] == package_s_tokens(expected)
    assert text(answer, "TRANSCRIPT") == expected["text"].strip()
    known = {"french": "fr"}
    assert text(answer, "DETECTED_LANGUAGE") == known.get(expected["language"], expected["language"])
    said = [s for s in expected["segments"] if s["tokens"]]
    for ours, theirs in zip(segments, said, strict=True):
        assert (ours["start"], ours["end"]) == (round(theirs["start"], 2), round(theirs["end"], 2))
        assert ours["avg_logprob"] == pytest.approx(theirs["avg_logprob"], abs=1e-3)
        assert ours["no_speech_prob"] == pytest.approx(theirs["no_speech_prob"], abs=1e-3)


def test_further_windows_are_encoded_in_batches(features: Model, encoder: Encoder, decoder: Model) -> None:
    sent = heard(features, encoder, noise(400), MODE="fast", LANGUAGE="en")
    assert len(sent["FEATURES"]) == 8
    answer = decoder.infer(sent)
    assert max(encoder.batches) <= 8
    assert encoder.batches[0] == len(sent["SPANS"]) - 8
    last = json.loads(text(answer, "SEGMENTS"))[-1]
    assert last["start"] >= sent["SPANS"][-1, 0] / 100


def test_requests_of_one_execute_are_answered_each(features: Model, encoder: Encoder, decoder: Model) -> None:
    asks = [heard(features, encoder, noise(s), LANGUAGE=language) for s, language in ((3, "en"), (4, "fr"), (2, "xx"))]
    first, second, third = decoder.execute(asks)
    assert text(first, "DETECTED_LANGUAGE") == "en"
    assert text(second, "DETECTED_LANGUAGE") == "fr"
    assert isinstance(third, ModelError) and 'LANGUAGE: "xx"' in third.message
    alone = decoder.infer(asks[0])
    assert text(alone, "TRANSCRIPT") == text(first, "TRANSCRIPT") != text(second, "TRANSCRIPT")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"LANGUAGE": "klingon"}, 'LANGUAGE: "klingon"; one of en, zh, .*yue is expected'),
        ({"TASK": "sing"}, 'TASK: "sing"; transcribe or translate is expected'),
        ({"MODE": "slow"}, 'MODE: "slow"; exact or fast is expected'),
        ({"LANGUAGE": b"\xff"}, "LANGUAGE: invalid UTF-8 at byte 0"),
        ({"SPANS": np.array([[0, 3001]], np.int32)}, "SPANS: a span outside the 300 frames of MEL or longer than 3000"),
        ({"SPANS": np.zeros((0, 2), np.int32)}, "SPANS: shape .*at least the 1 windows of FEATURES"),
        ({"FEATURES": np.zeros((0, 1500, 32), np.float32)}, r"FEATURES: shape \[0, 1500, 32\]; \[windows, 1500, 32\]"),
    ],
)
def test_wrong_input_is_named_and_the_next_request_works(
    features: Model, encoder: Encoder, decoder: Model, changed: dict, message: str
) -> None:
    good = heard(features, encoder, noise(3), LANGUAGE="en")
    with pytest.raises(ModelError, match=message) as raised:
        decoder.infer(good | changed)
    assert raised.value.code == "INVALID_ARG"
    assert decoder.infer(good)["TRANSCRIPT"].shape == (1,)


def test_an_error_of_the_encoder_reaches_the_client(features: Model, encoder: Encoder, decoder: Model) -> None:
    sent = heard(features, encoder, noise(65), LANGUAGE="en")
    encoder.error = "no memory left"
    with pytest.raises(ModelError, match="whisper_decoder: whisper_encoder: .*no memory left"):
        decoder.infer(sent)
    encoder.error = None
    assert decoder.infer(sent)["TRANSCRIPT"].shape == (1,)


def test_a_cancelled_request_is_answered_as_such_while_the_encoder_is_busy(
    features: Model, encoder: Encoder, decoder: Model
) -> None:
    sent = heard(features, encoder, noise(65), LANGUAGE="en")
    encoder.gate.clear()
    pending = decoder.stream(sent)
    pending.cancel()
    with pytest.raises(ModelError, match="cancelled") as raised:
        list(pending)
    assert raised.value.code == "CANCELLED"
    encoder.gate.set()
    assert decoder.infer(heard(features, encoder, noise(3), LANGUAGE="en"))["TRANSCRIPT"].shape == (1,)


def test_features_on_a_gpu_and_the_encoder_s_answers_there_give_the_same_words(
    repository: Path, features: Model, encoder: Encoder
) -> None:
    """As with an instance on a GPU, but the device is torch's `cpu`."""
    sent = heard(features, encoder, noise(40), LANGUAGE="en")
    moved = {name: on_gpu(one) if isinstance(one, np.ndarray) else one for name, one in sent.items()}

    def on_device(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {name: on_gpu(one) for name, one in encoder(arrays).items()}

    parameters = {"intra_op_thread_count": "1"}
    folder = repository / "whisper_decoder"
    with load_model(folder, models={"whisper_encoder": on_device}, parameters=parameters, timeout_s=60) as model:
        expected = model.infer(sent)
        assert text(model.infer(moved), "SEGMENTS") == text(expected, "SEGMENTS")  # an instance on the host moves them
        device, asked = model.module.Device, []
        model.module.Device = lambda name: asked.append(name) or device("cpu")
        model.instance.finalize()
        model.instance.initialize(model.arguments() | {"model_instance_kind": "GPU", "model_instance_device_id": "1"})
        encoder.batches.clear()
        said = [json.loads(text(model.infer(one), "SEGMENTS")) for one in (moved, sent)]
    assert asked == ["cuda:1"] and encoder.batches
    for segments in said:
        for ours, theirs in zip(segments, json.loads(text(expected, "SEGMENTS")), strict=True):
            assert (ours["tokens"], ours["start"], ours["end"]) == (theirs["tokens"], theirs["start"], theirs["end"])


def test_an_instance_on_a_gpu_without_one_says_what_is_missing(repository: Path) -> None:
    if "CUDAExecutionProvider" in onnxruntime.get_available_providers():
        pytest.skip("this ONNX Runtime knows GPUs")
    with pytest.raises(LoadError, match="the installed onnxruntime runs on CPUs only; install onnxruntime-gpu"):
        load_model(repository / "whisper_decoder", profile="gpu")


def test_unloading_ends_the_thread(repository: Path) -> None:
    before = threading.active_count()
    with load_model(repository / "whisper_decoder", parameters={"intra_op_thread_count": "1", "decode_slots": "2"}):
        assert threading.active_count() > before
    assert threading.active_count() == before


# whisper_decoder_stream


@pytest.mark.parametrize("mode", ["exact", "fast"])
def test_segments_come_while_later_windows_are_not_yet_encoded(
    features: Model, encoder: Encoder, decoder: Model, repository: Path, mode: str
) -> None:
    inputs = heard(features, encoder, noise(280), MODE=mode, LANGUAGE="en")
    whole = decoder.infer(inputs)
    encoder.gate.clear()  # no window behind those that came with the request is encoded
    with load_model(
        repository / "whisper_decoder_stream",
        models={"whisper_encoder": encoder},
        parameters={"intra_op_thread_count": "1"},
        timeout_s=60,
    ) as model:
        answers = iter(model.stream(inputs))
        pieces = [next(answers)]
        assert json.loads(text(pieces[0], "SEGMENTS"))
        encoder.gate.set()
        pieces += answers
    told = [segment for piece in pieces for segment in json.loads(text(piece, "SEGMENTS"))]
    assert told == json.loads(text(whole, "SEGMENTS"))
    assert "".join(text(piece, "TRANSCRIPT") for piece in pieces).strip() == text(whole, "TRANSCRIPT")
    assert {text(piece, "DETECTED_LANGUAGE") for piece in pieces} == {"en"}
    assert len(pieces) > 3
