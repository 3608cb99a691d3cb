"""yolo_preprocess as the server runs it, without the server."""

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from google.protobuf import text_format
from PIL import Image
from tritonclient.grpc import model_config_pb2

from tritonkit.testing import LoadError, Model, ModelError, load_model

SHIPPED = Path(__file__).parents[3] / "model_repository" / "yolo_preprocess"
NETWORK = {"width": 416, "height": 416, "batch": None, "data_type": "TYPE_UINT8"}


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., Model]:
    """Loads the model as it is shipped, for another network if asked."""

    def load(parameters: dict[str, str] | None = None, **network: object) -> Model:
        about = NETWORK | network
        folder = tmp_path / "yolo_preprocess"
        shutil.copytree(SHIPPED, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("yolo.json", "__pycache__"))
        (folder / "1" / "yolo.json").write_text(json.dumps(about))
        config = text_format.Parse((folder / "config.pbtxt").read_text(), model_config_pb2.ModelConfig())
        dims = [3, about["height"], about["width"]]
        config.output[0].dims[:] = dims if about["batch"] is None else [about["batch"], *dims]
        config.output[0].data_type = model_config_pb2.DataType.Value(about["data_type"])
        (folder / "config.pbtxt").write_text(text_format.MessageToString(config))
        return load_model(folder, parameters=parameters)

    return load


def picture(width: int = 60, height: int = 40, colour: tuple = (255, 0, 51)) -> np.ndarray:
    file = io.BytesIO()
    Image.new("RGB", (width, height), colour).save(file, "PNG")
    return np.frombuffer(file.getvalue(), np.uint8)


def test_a_picture_becomes_the_networks_input_and_its_geometry(load: Callable[..., Model]) -> None:
    answer = load().infer({"IMAGE": picture()})
    assert answer["IMAGES"].shape == (3, 416, 416)
    assert answer["IMAGES"].dtype == np.uint8
    assert answer["IMAGES"][:, 208, 208].tolist() == [255, 0, 51]
    assert answer["IMAGES"][:, 0, 0].tolist() == [114] * 3
    assert answer["GEOMETRY"].tolist() == pytest.approx([60, 40, 416 / 60, 0, 69])


def test_a_bad_picture_fails_alone_and_is_named(load: Callable[..., Model]) -> None:
    model = load()
    good, bad, other = model.execute([{"IMAGE": picture()}, {"IMAGE": picture()[:50]}, {"IMAGE": picture(7, 9)}])
    assert isinstance(bad, ModelError)
    assert bad.code == "INVALID_ARG"
    assert bad.message.startswith("IMAGE: ")
    assert good["GEOMETRY"][0] == 60
    assert other["GEOMETRY"][0] == 7
    with pytest.raises(ModelError, match=r"^IMAGE: 0 bytes; "):
        model.infer({"IMAGE": np.zeros(0, np.uint8)})
    assert model.infer({"IMAGE": picture()})["IMAGES"].shape == (3, 416, 416)


def test_many_at_once_give_what_each_gives_alone(load: Callable[..., Model]) -> None:
    """YOL-09."""
    model = load()
    pictures = [{"IMAGE": picture(30 + n, 40, (n, 2 * n, 250 - n))} for n in range(5)]
    for together, alone in zip(model.execute(pictures), map(model.infer, pictures), strict=True):
        assert (together["IMAGES"] == alone["IMAGES"]).all()
        assert (together["GEOMETRY"] == alone["GEOMETRY"]).all()


def test_the_input_has_the_networks_size_and_precision(load: Callable[..., Model]) -> None:
    """YOL-01: whatever the picture's sides."""
    images = load(width=640, height=320, data_type="TYPE_FP16").infer({"IMAGE": picture()})["IMAGES"]
    assert images.shape == (3, 320, 640)
    assert images.dtype == np.float16


def test_a_network_of_floats_gets_the_pixels_from_0_to_1(load: Callable[..., Model]) -> None:
    whole, floats = (load(data_type=f"TYPE_{one}").infer({"IMAGE": picture()})["IMAGES"] for one in ("UINT8", "FP32"))
    assert floats.dtype == np.float32
    assert (floats == whole.astype(np.float32) / np.float32(255)).all()


def test_a_fixed_batch_is_filled_up_with_nothing(load: Callable[..., Model]) -> None:
    images = load(batch=4).infer({"IMAGE": picture()})["IMAGES"]
    assert images.shape == (4, 3, 416, 416)
    assert images[0].any()
    assert not images[1:].any()


def test_the_largest_picture_is_a_parameter(load: Callable[..., Model]) -> None:
    with pytest.raises(ModelError, match=r"^IMAGE: 60 x 40 = 2400 pixels; at most 2399 are accepted; "):
        load({"max_pixels": "2399"}).infer({"IMAGE": picture()})
    assert load({"max_pixels": "2400", "exact_pixels": "10"}).infer({"IMAGE": picture()})


@pytest.mark.parametrize("text", ["", "0", "-5", "many", "1.5"])
def test_a_parameter_that_is_no_count_stops_the_loading(text: str, load: Callable[..., Model]) -> None:
    with pytest.raises(LoadError, match=f"parameter max_pixels: '{text}'; a whole number above 0 is expected"):
        load({"max_pixels": text})
