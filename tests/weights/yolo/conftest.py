"""Networks, pictures and the served code for the tests of YOLO's exporters."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
import onnxruntime

from weights.fetch import Package, fetch, fetch_folder
from weights.sources import YOLO
from weights.yolo.checkpoint import CheckpointOptions, export_checkpoint
from weights.yolo.environment import ultralytics_environment

ROOT = Path(__file__).parents[3]
SERVED = ROOT / "model_repository"
for model in ("yolo_preprocess", "yolo_postprocess"):
    sys.path.append(str(SERVED / model / "1"))

SIZE = 320
EXPORTS = {
    "yolov8n": ("outside", "inside"),
    "yolov10n": ("outside", "end2end"),
    "yolo11n": ("outside",),
}
REFERENCE = Path(__file__).with_name("reference") / "ultralytics_reference.py"
PHOTOS = (Package("scikit-image==0.26.0"), ("skimage/data/coffee.png", "skimage/data/motorcycle_left.png"))


@pytest.fixture(scope="session")
def cache_folder() -> Path:
    return Path(os.environ.get("TRITONKIT_CACHE", ROOT / ".cache"))


@pytest.fixture(scope="session")
def darknet_files(cache_folder: Path) -> tuple[Path, ...]:
    """YOLOv3-tiny: cfg, weights, names."""
    return tuple(fetch(YOLO["yolov3-tiny"], cache_folder, print))


@pytest.fixture(scope="session")
def photos(cache_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    """A cup of coffee (CC0) and a motorcycle, out of scikit-image, and the cup as a JPEG that its EXIF tag turns."""
    folder = fetch_folder(*PHOTOS, cache_folder, print)
    coffee, motorcycle = (folder / Path(member).name for member in PHOTOS[1])
    turned = tmp_path_factory.mktemp("photos") / "turned.jpg"
    exif = Image.Exif()
    exif[0x0112] = 6
    lying = Image.open(coffee).transpose(Image.Transpose.ROTATE_90)
    lying.save(turned, quality=95, exif=exif)
    return coffee, motorcycle, turned


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    """Coloured clouds: wide, usual, upright."""
    folder = tmp_path_factory.mktemp("pictures")
    chance = np.random.default_rng(5)
    paths = []
    for width, height in ((1920, 1080), (640, 480), (333, 500)):
        paths.append(folder / f"{width}x{height}.png")
        _clouds(chance, width, height).save(paths[-1])
    return tuple(paths)


def _clouds(chance: np.random.Generator, width: int, height: int) -> Image.Image:
    coarse = chance.integers(0, 256, (9, 12, 3), dtype=np.uint8)
    return Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)


@pytest.fixture(scope="session")
def ultralytics_python(cache_folder: Path) -> Path:
    return ultralytics_environment(cache_folder, print)


@pytest.fixture(scope="session")
def reference(ultralytics_python: Path) -> Callable[[dict], dict]:
    """Asks Ultralytics or OpenCV, in their own environment."""

    def ask(job: dict) -> dict:
        job["script_folder"] = str(ROOT / "weights" / "yolo")
        done = subprocess.run(
            [str(ultralytics_python), "-P", str(REFERENCE), json.dumps(job)], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout.splitlines()[-1])

    return ask


@pytest.fixture(scope="session")
def checkpoints(
    reference: Callable, pictures: tuple[Path, ...], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """Randomly initialised checkpoints: of three generations, sure of some boxes; and one that is not for detection."""
    folder = tmp_path_factory.mktemp("checkpoints")
    paths = {name: folder / f"{name}.pt" for name in (*EXPORTS, "yolo11n-seg")}
    made = {name: str(path) for name, path in paths.items()}
    reference({"make": made, "pictures": [str(picture) for picture in pictures], "size": SIZE})
    return paths


@pytest.fixture(scope="session")
def exports(
    checkpoints: dict[str, Path], ultralytics_python: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """Their exports, with non-maximum suppression where each can have it."""
    folders = {}
    for name, places in EXPORTS.items():
        for place in places:
            folders[f"{name} {place}"] = tmp_path_factory.mktemp("export")
            options = CheckpointOptions(image_size=(SIZE, SIZE), nms=place, iou=0.45)
            export_checkpoint(checkpoints[name], folders[f"{name} {place}"], python=ultralytics_python, options=options)
    return folders


@pytest.fixture(scope="session")
def run_network() -> Callable[[Path, np.ndarray], np.ndarray]:
    """Runs the network of an export folder on a batch of pictures."""
    sessions: dict[Path, onnxruntime.InferenceSession] = {}

    def run(folder: Path, images: np.ndarray) -> np.ndarray:
        if folder not in sessions:
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = 2
            sessions[folder] = onnxruntime.InferenceSession(str(folder / "model.onnx"), options)
        session = sessions[folder]
        return session.run(None, {session.get_inputs()[0].name: images})[0]

    return run


@pytest.fixture(scope="session")
def detect(run_network: Callable[[Path, np.ndarray], np.ndarray]) -> Callable:
    """The served code from a picture file to boxes: (boxes and scores and classes [n, 6], the network's outputs)."""
    from yolo_boxes import suppress_overlaps, to_original
    from yolo_candidates import candidates_in
    from yolo_letterbox import as_floats, pad
    from yolo_picture import Limits, fitted_picture

    def detect(folder: Path, picture: Path) -> tuple[np.ndarray, np.ndarray]:
        about = json.loads((folder / "yolo.json").read_text())
        pixels, letterbox = fitted_picture(picture.read_bytes(), about["width"], about["height"], Limits())
        images = pad(pixels, letterbox, about["width"], about["height"])
        if about["data_type"] != "TYPE_UINT8":
            images = as_floats(images, "float32")
        outputs = run_network(folder, images[None])
        found = candidates_in(outputs, about["layout"], about["classes"], 0.25)
        if about["layout"] != "detections":
            found = suppress_overlaps(found, 0.45, 300)
        boxes = to_original(found.boxes, letterbox.tensor())
        return np.column_stack((boxes, found.scores, found.classes)), outputs

    return detect
