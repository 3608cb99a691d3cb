import json
from pathlib import Path

import numpy as np
import onnx
import pytest

from weights.errors import ExportError
from weights.whisper import onnx_graph
from weights.whisper.checkpoint import Checkpoint
from weights.whisper.export import export_whisper, write_export

FILES = ["cross.onnx", "decoder.onnx", "encoder.onnx", "whisper.json", "whisper.tiktoken"]


def test_an_export_holds_all_that_is_served_and_is_the_same_every_time(small: Checkpoint, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        write_export(small, tmp_path / name)
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == FILES
    for name in FILES:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes(), name
    described = json.loads((tmp_path / "a" / "whisper.json").read_text(encoding="utf-8"))
    assert described["dimensions"]["n_mels"] == 128


def test_graphs_stay_within_what_triton_24_10_reads(small: Checkpoint, tmp_path: Path) -> None:
    write_export(small, tmp_path)
    for name in ("encoder.onnx", "cross.onnx", "decoder.onnx"):
        model = onnx.load(tmp_path / name)
        assert model.ir_version <= 10
        assert [(opset.domain, opset.version <= 21) for opset in model.opset_import] == [("", True)]


def test_big_weights_lie_beside_the_graph(small, open_session, rng, tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "apart").mkdir()
    write_export(small, tmp_path / "one")
    monkeypatch.setattr(onnx_graph, "ONE_FILE_BYTES", 1000)
    write_export(small, tmp_path / "apart")
    assert (tmp_path / "apart" / "encoder.onnx.data").stat().st_size > 100_000
    mel = rng.standard_normal((1, 128, 80), np.float32)
    one, apart = (open_session(tmp_path / name / "encoder.onnx").run(None, {"mel": mel}) for name in ("one", "apart"))
    np.testing.assert_array_equal(one, apart)


def test_an_unknown_dtype_is_answered_with_the_known_ones(small: Checkpoint, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="dtype 'int8': one of float32, float16 is expected"):
        write_export(small, tmp_path, dtype="int8")


def test_a_missing_model_bin_is_named(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="model.bin: no such file"):
        export_whisper(tmp_path, tmp_path)


def test_a_checkpoint_that_lacks_an_array_is_refused_by_its_name(small: Checkpoint, tmp_path: Path) -> None:
    arrays = {name: array for name, array in small.arrays.items() if name != "decoder.ln.bias"}
    broken = Checkpoint(source="mine", dimensions=small.dimensions, arrays=arrays)
    with pytest.raises(ExportError, match="mine: no array decoder.ln.bias"):
        write_export(broken, tmp_path)
