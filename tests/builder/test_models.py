"""The shipped models: other checkpoints, and what is refused."""

from __future__ import annotations

import json

import onnx
import pytest
from onnx import TensorProto, helper

from builder import DeclarationError, check_pipelines
from builder.models import llm, whisper, yolo
from builder.pipelines.assistant import assistant
from builder.pipelines.detect import detect
from builder.pipelines.transcribe import transcribe


@pytest.mark.parametrize(
    ("size", "n_mels", "state"),
    [("tiny", 80, 384), ("base.en", 80, 512), ("medium", 80, 1024), ("large-v3", 128, 1280), ("turbo", 128, 1280)],
)
def test_whisper_of_every_size_fits_together(size, n_mels, state):
    models = whisper(size)
    assert models.encoder.config["input"][0]["dims"] == (n_mels, 3000)
    assert models.encoder.config["output"][0]["dims"] == (1500, state)
    assert check_pipelines([assistant(whisper=size)])[1] == ()


def test_whisper_takes_dimensions_from_an_export(tmp_path):
    (tmp_path / "whisper.json").write_text(json.dumps({"dimensions": {"n_mels": 80, "n_audio_state": 64}}))
    models = whisper(tmp_path)
    assert models.encoder.config["output"][0]["dims"] == (1500, 64)
    assert models.decoder.artifacts[0].source == tmp_path / "*"


def test_whisper_of_no_size_names_the_nearest():
    with pytest.raises(DeclarationError, match="whisper: tinny is no size of Whisper and no folder with .* mean tiny?"):
        whisper("tinny")


def test_a_streaming_decoder_is_a_model_of_its_own_and_makes_its_ensemble_decoupled():
    both = [transcribe(), transcribe(streams="yes")]
    assert check_pipelines(both)[1] == ()
    plain, stream = (pipeline.steps[-1].model for pipeline in both)
    assert (plain.name, stream.name) == ("whisper_decoder", "whisper_decoder_stream")
    assert stream.config["model_transaction_policy"] == {"decoupled": True}
    assert stream.config["output"] == plain.config["output"]
    with pytest.raises(DeclarationError, match='transcribe, streams: it is "ja"; yes or no is needed'):
        transcribe(streams="ja")


def _export(folder, batch, shape):
    graph = helper.make_graph(
        [],
        "g",
        [helper.make_tensor_value_info("pixels", TensorProto.FLOAT, [batch or "n", 3, 640, 640])],
        [helper.make_tensor_value_info("boxes", TensorProto.FLOAT, [batch or "n", *shape])],
    )
    onnx.save(helper.make_model(graph), str(folder / "model.onnx"))
    described = {"input": "pixels", "output": "boxes", "height": 640, "width": 640, "batch": batch}
    (folder / "yolo.json").write_text(json.dumps(described))


def test_yolo_takes_names_and_dims_from_an_export(tmp_path):
    _export(tmp_path, None, [300, 6])
    models = yolo(tmp_path)
    assert (models.images, models.predictions) == ("pixels", "boxes")
    assert models.network.config["input"][0]["dims"] == (3, 640, 640)
    assert models.network.config["output"][0]["dims"] == (300, 6)
    assert models.network.config["max_batch_size"] == 8
    assert check_pipelines([detect(yolo=str(tmp_path))])[1] == ()


def test_yolo_with_a_fixed_batch_does_not_batch(tmp_path):
    _export(tmp_path, 1, [84, 8400])
    models = yolo(tmp_path)
    assert models.network.config["max_batch_size"] == 0
    assert models.preprocess.config["output"][0]["dims"] == (1, 3, 640, 640)
    assert check_pipelines([detect(yolo=str(tmp_path))])[1] == ()


def test_yolo_of_no_export_says_how_to_make_one():
    with pytest.raises(DeclarationError, match="Run `tritonkit weights --yolo` with the checkpoint first"):
        yolo("yolo99")


def test_llm_takes_a_name_a_folder_and_engine_arguments(tmp_path):
    hub = llm("org/name", engine={"max_model_len": 64})
    assert json.loads(hub.texts["model.json"])["model"] == "org/name"
    assert json.loads(hub.texts["model.json"])["max_model_len"] == 64
    assert hub.artifacts == ()
    folder = llm(tmp_path)
    assert json.loads(folder.texts["model.json"])["model"] == "checkpoint"
    assert folder.artifacts[0].source == tmp_path


def test_on_a_gpu_networks_batch_in_a_short_window_wait_not_for_ever_and_are_warm_at_both_ends():
    for model in (whisper().encoder, yolo().network):
        gpu = model.config_for("gpu")
        policy = gpu["dynamic_batching"]["default_queue_policy"]
        assert policy["timeout_action"] == "REJECT" and policy["allow_timeout_override"] is True
        assert policy["default_timeout_microseconds"] == 30_000_000
        assert [one["batch_size"] for one in gpu["model_warmup"]] == [1, gpu["max_batch_size"]]
        for one in gpu["model_warmup"]:
            (tensor,) = one["inputs"].values()
            assert tuple(tensor["dims"]) == tuple(gpu["input"][0]["dims"])
            assert tensor.get("random_data", False) is (tensor["data_type"] == "TYPE_UINT8")
            assert tensor.get("zero_data", False) is (tensor["data_type"] == "TYPE_FP32")
        assert "default_queue_policy" not in model.config_for("cpu")["dynamic_batching"]
