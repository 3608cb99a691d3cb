"""Darknet networks in ONNX: every float used, every kind of layer, files that do not belong together."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

from weights.errors import ExportError
from weights.yolo.darknet import export_darknet

# Every kind of layer that is known. Convolutions: filters, channels that come in, size.
CFG = """
[net]
width=64
height=64
[convolutional]
batch_normalize=1
filters=8
size=3
stride=1
pad=1
activation=leaky
[maxpool]
size=2
stride=2
[convolutional]
batch_normalize=1
filters=8
size=3
stride=1
pad=1
activation=mish
[shortcut]
from=-2
activation=linear
[convolutional]
batch_normalize=1
filters=16
size=3
stride=2
pad=1
activation=swish
[maxpool]
size=5
stride=1
[route]
layers=-1,-2
[route]
layers=-1
groups=2
group_id=1
[convolutional]
filters=8
size=1
stride=1
pad=1
activation=relu
[upsample]
stride=2
[route]
layers=-1,3
[maxpool]
size=2
stride=1
[convolutional]
filters=21
size=1
stride=1
pad=1
activation=linear
[yolo]
mask=1,2,3
anchors=5,6, 10,14, 23,27, 37,58
classes=2
num=4
scale_x_y=1.1
"""
CONVOLUTIONS = ((8, 3, 3, True), (8, 8, 3, True), (16, 8, 3, True), (8, 16, 1, False), (21, 16, 1, False))


def weights_of(seed: int = 3) -> np.ndarray:
    """Random floats in the file's order: bias, or bias, scale, mean, variance; then the kernel."""
    chance = np.random.default_rng(seed)
    parts = []
    for filters, channels, size, normalised in CONVOLUTIONS:
        parts.append(chance.normal(0, 0.3, filters))
        if normalised:
            parts += [chance.uniform(0.5, 1.5, filters), chance.normal(0, 0.3, filters)]
            parts.append(chance.uniform(0.5, 1.5, filters))
        parts.append(chance.normal(0, 1 / np.sqrt(channels * size * size), filters * channels * size * size))
    return np.concatenate(parts).astype("<f4")


def write(folder: Path, floats: np.ndarray, cfg: str = CFG, names: str = "cat\ndog\n") -> tuple[Path, Path, Path]:
    paths = folder / "net.cfg", folder / "net.weights", folder / "net.names"
    paths[0].write_text(cfg)
    paths[1].write_bytes(np.array([0, 2, 0, 0, 0], "<i4").tobytes() + floats.tobytes())
    paths[2].write_text(names)
    return paths


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[tuple[Path, Path, Path], Path]:
    """The files of a small network, and its export."""
    files = write(tmp_path_factory.mktemp("darknet"), weights_of())
    out = tmp_path_factory.mktemp("export")
    export_darknet(*files, out)
    return files, out


def test_an_export_is_three_files_that_agree(small: tuple) -> None:
    _, out = small
    assert sorted(path.name for path in out.iterdir()) == ["labels.txt", "model.onnx", "yolo.json"]
    assert (out / "labels.txt").read_text() == "cat\ndog\n"
    assert json.loads((out / "yolo.json").read_text()) == {
        "source": "net.weights (Darknet)",
        "input": "images",
        "output": "output0",
        "data_type": "TYPE_FP32",
        "output_data_type": "TYPE_FP32",
        "height": 64,
        "width": 64,
        "batch": None,
        "output_shape": [6, 3072],
        "layout": "boxes_scores",
        "classes": 2,
    }


def test_the_file_fits_the_servers_onnx_runtime_and_holds_no_path_of_this_machine(small: tuple) -> None:
    path = small[1] / "model.onnx"
    model = onnx.load(path)
    assert model.ir_version <= 10
    assert [(entry.domain, entry.version) for entry in model.opset_import] == [("", 18)]
    dims = model.graph.output[0].type.tensor_type.shape.dim
    assert (bool(dims[0].dim_param), dims[1].dim_value, dims[2].dim_value) == (True, 6, 3072)
    assert str(Path(__file__).parents[3]).encode() not in path.read_bytes()


def test_a_batch_gives_what_its_pictures_give_alone(small: tuple, run_network: Callable) -> None:
    """YOL-09."""
    images = np.random.default_rng(0).random((3, 3, 64, 64), np.float32)
    alone = np.concatenate([run_network(small[1], image[None]) for image in images])
    assert np.allclose(run_network(small[1], images), alone, atol=1e-3)


@pytest.mark.slow
def test_every_layer_computes_what_opencv_computes(small: tuple, run_network: Callable, reference: Callable) -> None:
    (cfg, weights, _), out = small
    image = np.random.default_rng(1).random((1, 3, 64, 64), np.float32)
    np.save(out.parent / "image.npy", image)
    job = {"cfg": str(cfg), "weights": str(weights), "image": str(out.parent / "image.npy")}
    wanted = np.array(reference({"darknet_raw": job}))  # rows by place, then anchor; scores under 0.2 are 0
    ours = run_network(out, image)[0].reshape(6, 3, 32 * 32).transpose(2, 1, 0).reshape(-1, 6)
    assert np.abs(ours[:, :4] - wanted[:, :4] * 64).max() < 0.01
    told = wanted[:, 5:] > 0
    assert told.sum() > 100
    assert np.abs(ours[:, 4:] - wanted[:, 5:])[told].max() < 1e-4


@pytest.mark.parametrize(
    ("floats", "message"),
    [
        (weights_of()[:-1], "weights: it ends after 2564 floats, the .cfg asks for more. "),
        (np.append(weights_of(), weights_of()[:5]), "weights: 2570 floats, the .cfg asks for 2565. "),
    ],
)
def test_weights_of_another_network_are_refused(floats: np.ndarray, message: str, tmp_path: Path) -> None:
    with pytest.raises(ExportError) as refused:
        export_darknet(*write(tmp_path, floats), tmp_path)
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[upsample]", "[reorg]", "cfg line 47, [reorg]: this kind of layer is not known; "),
        ("activation=mish", "activation=tanh", "cfg line 15, [convolutional]: activation 'tanh' is not known; "),
        ("classes=2", "classes=3", "cfg line 60, [yolo]: 21 channels come in; 3 anchors of 5 + 3 are expected."),
        ("scale_x_y=1.1", "new_coords=1", "cfg line 60, [yolo]: new_coords=1 is not known. "),
        ("layers=-1,3", "layers=-1,40", "cfg line 49, [route]: layer 40 is referred to; only earlier layers can be."),
        ("layers=-1,3", "layers=-1,5", "cfg line 49, [route]: its layers must exist and have one size."),
    ],
)
def test_what_is_not_known_is_refused_by_its_line(old: str, new: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ExportError) as refused:
        export_darknet(*write(tmp_path, weights_of(), CFG.replace(old, new)), tmp_path)
    assert str(refused.value).startswith(message)


def test_names_of_another_network_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ExportError) as refused:
        export_darknet(*write(tmp_path, weights_of(), names="cat\n"), tmp_path)
    assert str(refused.value).startswith("net.names: 1 class names, one line each; the .cfg has 2. ")


@pytest.mark.parametrize("content", [b"", b"12345678901", b"\0" * 30])
def test_what_is_no_weights_file_is_refused(content: bytes, tmp_path: Path) -> None:
    cfg, weights, names = write(tmp_path, weights_of())
    weights.write_bytes(content)
    with pytest.raises(ExportError, match="^weights: "):
        export_darknet(cfg, weights, names, tmp_path)
