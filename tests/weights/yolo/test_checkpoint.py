"""Ultralytics checkpoints: what an export holds, what is refused, and that no code in a file is run."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch

from weights.errors import ExportError
from weights.yolo.checkpoint import CheckpointOptions, export_checkpoint


@pytest.mark.slow
def test_an_export_names_the_checkpoints_classes_and_frees_only_the_batch(exports: dict[str, Path]) -> None:
    for case, shape in (("yolov8n outside", (84, 2100)), ("yolov8n inside", (300, 6)), ("yolov10n end2end", (300, 6))):
        folder = exports[case]
        assert sorted(path.name for path in folder.iterdir()) == ["labels.txt", "model.onnx", "yolo.json"]
        assert (folder / "labels.txt").read_text().splitlines() == [f"thing {number}" for number in range(80)]
        model = onnx.load(folder / "model.onnx")
        assert model.ir_version <= 10
        assert max(entry.version for entry in model.opset_import) <= 21
        assert _dims(model.graph.input[0]) == ["batch", 3, 320, 320]
        assert _dims(model.graph.output[0]) == ["batch", *shape]
        about = json.loads((folder / "yolo.json").read_text())
        assert about["batch"] is None
        assert tuple(about["output_shape"]) == shape


def _dims(value: onnx.ValueInfoProto) -> list:
    return [dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim]


@pytest.mark.slow
def test_half_precision_keeps_float32_at_the_door_and_finds_nearly_the_same(
    checkpoints: dict[str, Path],
    exports: dict[str, Path],
    ultralytics_python: Path,
    run_network: Callable,
    tmp_path: Path,
) -> None:
    options = CheckpointOptions(image_size=(320, 320), half=True)
    export_checkpoint(checkpoints["yolov8n"], tmp_path, python=ultralytics_python, options=options)
    assert json.loads((tmp_path / "yolo.json").read_text())["data_type"] == "TYPE_FP32"
    whole = exports["yolov8n outside"]
    assert (tmp_path / "model.onnx").stat().st_size < 0.6 * (whole / "model.onnx").stat().st_size
    images = np.random.default_rng(4).random((2, 3, 320, 320), np.float32)
    halved, exact = run_network(tmp_path, images), run_network(whole, images)
    assert np.median(np.abs(halved - exact)[:, :4]) < 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("yolo11n-seg", CheckpointOptions(), "yolo11n-seg.pt: it is for the task 'segment' with the head Segment; "),
        ("yolo11n", CheckpointOptions(nms="end2end"), "yolo11n.pt: it has no end-to-end head (YOLOv10 and YOLO26"),
    ],
)
def test_what_cannot_be_served_is_refused_by_name(
    name: str, options: CheckpointOptions, message: str, checkpoints: dict, ultralytics_python: Path, tmp_path: Path
) -> None:
    with pytest.raises(ExportError) as refused:
        export_checkpoint(checkpoints[name], tmp_path, python=ultralytics_python, options=options)
    assert str(refused.value).startswith(message)


class Mischief:
    """Makes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple:
        return Path.touch, (self.path,)


@pytest.mark.slow
def test_code_in_a_checkpoint_is_not_run(ultralytics_python: Path, tmp_path: Path) -> None:
    harm = tmp_path / "harm"
    torch.save({"model": Mischief(harm)}, tmp_path / "bad.pt")
    with pytest.raises(ExportError, match=r"^bad\.pt: "):
        export_checkpoint(tmp_path / "bad.pt", tmp_path, python=ultralytics_python)
    assert not harm.exists()
    torch.load(tmp_path / "bad.pt", weights_only=False)
    assert harm.exists(), "the file would do harm where it is trusted"


def test_a_missing_file_and_an_unknown_option_are_refused_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"no\.pt: there is no such file\. "):
        export_checkpoint(tmp_path / "no.pt", tmp_path, python=Path("none"))
    (tmp_path / "some.pt").touch()
    with pytest.raises(
        ExportError, match=r"nms 'somewhere' is not known\. One of outside, end2end, inside is expected\."
    ):
        export_checkpoint(
            tmp_path / "some.pt", tmp_path, python=Path("none"), options=CheckpointOptions(nms="somewhere")
        )
