"""Backends: what they read, what they fill in, what they refuse."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import builder
from builder import DeclarationError, Pipeline, RepositoryError, Step, check_pipelines, make_plan
from builder.model import thaw
from builder.repository import write_repository


@pytest.fixture
def net(tmp_path: Path):
    """Writes an ONNX file with one matrix product: `net("n.onnx", batch="batch")`."""

    def write(name: str, batch: str | int, element: int = TensorProto.FLOAT, outside: bool = False) -> Path:
        weight = numpy_helper.from_array(np.ones((4, 3), helper.tensor_dtype_to_np_dtype(element)), "w")
        graph = helper.make_graph(
            [helper.make_node("MatMul", ["x", "w"], ["y"])],
            "g",
            [helper.make_tensor_value_info("x", element, [batch, 4])],
            [helper.make_tensor_value_info("y", element, [batch, 3])],
            [weight],
        )
        model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)])
        more = {"save_as_external_data": True, "location": f"{name}.data", "size_threshold": 0} if outside else {}
        onnx.save(model, str(tmp_path / name), **more)
        return tmp_path / name

    return write


def _pipe(model, inputs="x", outputs="y"):
    return Pipeline(
        name="p", inputs=inputs, outputs=outputs, steps=[Step(model=model, input_map=inputs, output_map=outputs)]
    )


def test_onnx_reads_tensors_and_the_batch_from_the_file(net):
    model = builder.onnx("n", file=net("n.onnx", "batch"), max_batch_size=16)
    config = model.config_for("cpu")
    assert config["max_batch_size"] == 16
    assert config["input"] == [{"name": "x", "data_type": "TYPE_FP32", "dims": [4]}]
    assert config["output"] == [{"name": "y", "data_type": "TYPE_FP32", "dims": [3]}]
    assert config["model_warmup"][0]["inputs"]["x"]["dims"] == [4]
    assert config["instance_group"] == [{"kind": "KIND_CPU", "count": 1}]
    assert model.config_for("gpu")["instance_group"] == [{"kind": "KIND_GPU", "count": 1, "gpus": [0]}]
    assert check_pipelines([_pipe(model)])[1] == ()


def test_onnx_with_a_fixed_batch_does_not_batch(net):
    config = builder.onnx("n", file=net("n.onnx", 1)).config_for("cpu")
    assert config["max_batch_size"] == 0
    assert config["input"][0]["dims"] == [1, 4]
    assert "dynamic_batching" not in config


def test_onnx_with_a_fixed_batch_cannot_be_made_to_batch(net):
    with pytest.raises(DeclarationError, match="n: max_batch_size 4, and the first size of x is fixed to 1"):
        builder.onnx("n", file=net("n.onnx", 1), max_batch_size=4)


@pytest.mark.parametrize(
    ("element", "data_type"),
    [(TensorProto.FLOAT16, "TYPE_FP16"), (TensorProto.DOUBLE, "TYPE_FP64"), (TensorProto.INT32, "TYPE_INT32")],
)
def test_onnx_takes_types_from_the_file(element, data_type, net):
    assert builder.onnx("n", file=net("n.onnx", "n", element)).config_for("cpu")["input"][0]["data_type"] == data_type


def test_onnx_links_the_file_and_the_weights_beside_it(net, tmp_path):
    model = builder.onnx("n", file=net("big.onnx", "batch", outside=True))
    write_repository(make_plan([_pipe(model)]), tmp_path / "repo", exports=tmp_path)
    assert (tmp_path / "repo/n/1/model.onnx").samefile(tmp_path / "big.onnx")
    assert (tmp_path / "repo/n/1/big.onnx.data").samefile(tmp_path / "big.onnx.data")


def test_onnx_says_what_is_wrong_with_the_file(tmp_path):
    (tmp_path / "no.onnx").write_bytes(b"not a model")
    with pytest.raises(DeclarationError, match="n: there is no file .*absent.onnx; an ONNX file is needed"):
        builder.onnx("n", file=tmp_path / "absent.onnx")
    with pytest.raises(DeclarationError, match="n: no.onnx is no ONNX model"):
        builder.onnx("n", file=tmp_path / "no.onnx")


def test_python_needs_model_py(tmp_path):
    with pytest.raises(DeclarationError, match="pre: there is no model.py in "):
        builder.python("pre", code=tmp_path, input=["A FP32 [1]"], output=["B FP32 [1]"])


def test_vllm_is_decoupled_passes_through_and_takes_engine_arguments():
    model = builder.vllm("chat", engine={"model": "org/name"}, pass_through=["NOTE"])
    config = model.config_for("gpu")
    assert config["model_transaction_policy"] == {"decoupled": True}
    assert config["instance_group"] == [{"kind": "KIND_MODEL", "count": 1}]
    assert "NOTE" in {one["name"] for one in config["input"]} & {one["name"] for one in config["output"]}
    assert json.loads(model.texts["model.json"]) == {"model": "org/name"}
    assert (model.trees[0].source / "model.py").name == "model.py"
    assert builder.vllm("chat", engine={}, code=".").trees[0].source == Path.cwd()


def test_the_config_tells_how_many_requests_an_engine_works_on_at_once():
    model = builder.vllm("chat", engine={"model": "a", "max_num_seqs": 8}, parameters={"mine": "1"})
    assert model.config_for("gpu")["parameters"] == {
        "max_num_seqs": {"string_value": "8"},
        "mine": {"string_value": "1"},
    }
    assert "parameters" not in builder.vllm("chat", engine={"model": "a"}).config_for("cpu")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "there" / "scale"
    (path / "2").mkdir(parents=True)
    (path / "2" / "model.py").write_text("class TritonPythonModel: ...\n")
    (path / "config.pbtxt").write_text(
        '# by hand\nbackend: "python"\ninput { name: "x" data_type: TYPE_FP32 dims: [ 4 ] }\n'
        'output { name: "y" data_type: TYPE_FP32 dims: [ 4 ] }\n'
        "instance_group { kind: KIND_CPU }\n"
    )
    return path


def test_existing_takes_everything_from_the_folder_and_keeps_its_config(folder, tmp_path):
    model = builder.existing(folder)
    assert (model.name, model.version) == ("scale", 2)
    assert thaw(model.config)["input"] == [{"name": "x", "data_type": "TYPE_FP32", "dims": [4]}]
    write_repository(make_plan([_pipe(model)]), tmp_path / "repo", exports=tmp_path)
    assert (tmp_path / "repo/scale/config.pbtxt").read_text() == (folder / "config.pbtxt").read_text()
    assert (tmp_path / "repo/scale/2/model.py").exists()


def test_existing_with_changes_gets_a_config_of_its_own_in_another_folder(folder, tmp_path):
    model = builder.existing(folder, max_batch_size=4, dynamic_batching={})
    write_repository(make_plan([_pipe(model)]), tmp_path / "repo", exports=tmp_path)
    text = (tmp_path / "repo/scale/config.pbtxt").read_text()
    assert "max_batch_size: 4" in text
    assert "kind: KIND_CPU" in text


def test_existing_in_place_is_left_alone_and_not_changed(folder, tmp_path):
    repository = folder.parent
    before = (folder / "config.pbtxt").read_text()
    write_repository(make_plan([_pipe(builder.existing(folder))]), repository, exports=tmp_path)
    assert (folder / "config.pbtxt").read_text() == before
    with pytest.raises(RepositoryError, match="scale/config.pbtxt is in the way: tritonkit did not write it"):
        write_repository(make_plan([_pipe(builder.existing(folder, max_batch_size=4))]), repository, exports=tmp_path)


def test_existing_says_what_the_folder_lacks(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(DeclarationError, match="empty: there is no .*config.pbtxt"):
        builder.existing(tmp_path / "empty")
    (tmp_path / "empty" / "config.pbtxt").write_text('backend: "python"\n')
    with pytest.raises(DeclarationError, match="empty: there is no version folder"):
        builder.existing(tmp_path / "empty")
