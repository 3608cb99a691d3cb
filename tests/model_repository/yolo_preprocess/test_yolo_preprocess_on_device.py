"""The same pixels by torch, on the CPU and, where there is one, on a GPU, as by numpy: bit for bit."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from yolo_letterbox import as_floats, letterbox_for, pad, resize_bilinear
from yolo_picture import Limits, fitted_picture

from tests.needs_gpu import TORCH, marks
from tritonkit.testing import LoadError, load_model

SHIPPED = Path(__file__).parents[3] / "model_repository" / "yolo_preprocess"
DEVICES = ["cpu", pytest.param("cuda:0", marks=marks(TORCH))]


@pytest.fixture(scope="module")
def photo() -> bytes:
    return (Path(__file__).parents[3] / "samples" / "coffee.jpg").read_bytes()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("size", "wanted"), [((97, 61), (40, 25)), ((13, 7), (416, 224)), ((640, 3), (416, 2))])
def test_scaled_pixels_are_equal(size: tuple, wanted: tuple, device: str) -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (size[1], size[0], 3), np.uint8)
    box = letterbox_for(*size, 416, 416)
    there = resize_bilinear(torch.tensor(pixels, device=device), *wanted)
    assert (there.cpu().numpy() == resize_bilinear(pixels, *wanted)).all()
    placed = resize_bilinear(pixels, box.placed_width, box.placed_height)
    images = pad(torch.tensor(placed, device=device), box, 416, 416)
    assert (images.cpu().numpy() == pad(placed, box, 416, 416)).all()
    for dtype in ("float32", "float16"):
        floats = as_floats(images, dtype).cpu().numpy()
        assert floats.dtype == dtype and (floats == as_floats(pad(placed, box, 416, 416), dtype)).all()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_turned_photo_is_equal(photo: bytes, orientation: int, device: str, tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    Image.open(SHIPPED.parents[1] / "samples" / "coffee.jpg").save(tmp_path / "turned.jpg", exif=exif)
    content = (tmp_path / "turned.jpg").read_bytes()
    here, box = fitted_picture(content, 416, 416, Limits())
    there, other = fitted_picture(content, 416, 416, Limits(), device)
    assert isinstance(there, torch.Tensor) and there.device.type == device.partition(":")[0]
    assert (there.cpu().numpy() == here).all() and other == box


def test_an_instance_on_a_gpu_scales_there_and_leaves_the_pixels_there(photo: bytes, tmp_path: Path) -> None:
    folder = tmp_path / "yolo_preprocess"
    shutil.copytree(SHIPPED, folder, ignore=shutil.ignore_patterns("yolo.json", "__pycache__"))
    network = {"width": 416, "height": 416, "batch": None, "data_type": "TYPE_UINT8"}
    (folder / "1" / "yolo.json").write_text(json.dumps(network))
    plain = load_model(folder).infer({"IMAGE": np.frombuffer(photo, np.uint8)})
    if not torch.cuda.is_available():
        with pytest.raises(LoadError, match="CUDA"):
            load_model(folder, profile="gpu")
    with load_model(folder, parameters={"device_outputs": "IMAGES"}) as model:
        assert model.instance.device is None
        model.module.GPU = "cpu"  # torch as on the GPU, on a machine without one
        model.instance.initialize(model.arguments() | {"model_instance_kind": "GPU"})
        assert model.instance.device == "cpu:0"
        made: list[object] = []
        tensor = model.backend.Tensor
        from_dlpack = tensor.from_dlpack
        model.module.pb_utils.Tensor = type(
            "Tensor", (tensor,), {"from_dlpack": staticmethod(lambda n, t: made.append(t) or from_dlpack(n, t))}
        )
        answer = model.infer({"IMAGE": np.frombuffer(photo, np.uint8)})
    assert [type(one) for one in made] == [torch.Tensor]
    assert (answer["IMAGES"] == plain["IMAGES"]).all()
    assert (answer["GEOMETRY"] == plain["GEOMETRY"]).all()
