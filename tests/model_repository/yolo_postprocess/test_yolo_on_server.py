"""The pipeline `detect` on the real server: the shipped photo, bad pictures, many at once."""

import io
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import tritonclient.grpc as grpc
from PIL import Image

from embedded import EmbeddedServer

pytestmark = pytest.mark.server


@pytest.fixture
def client(served: EmbeddedServer) -> Iterator[grpc.InferenceServerClient]:
    with grpc.InferenceServerClient(served.grpc) as client:
        yield client


@pytest.fixture
def photo(checkout: Path) -> Image.Image:
    """A cup of coffee, 600 x 400 pixels."""
    return Image.open(checkout / "samples" / "coffee.jpg")


def encoded(picture: Image.Image, kind: str = "PNG", **options: object) -> bytes:
    file = io.BytesIO()
    picture.save(file, kind, **options)
    return file.getvalue()


def detect(client: grpc.InferenceServerClient, content: bytes, **bounds: float) -> dict:
    """The DETECTIONS of one picture, checked against the other outputs."""
    inputs = [grpc.InferInput("IMAGE", [len(content)], "UINT8")]
    inputs[0].set_data_from_numpy(np.frombuffer(content, np.uint8))
    for name, value in bounds.items():
        inputs.append(grpc.InferInput(name, [1], "FP32"))
        inputs[-1].set_data_from_numpy(np.array([value], np.float32))
    answer = client.infer("detect", inputs, client_timeout=60)
    found = json.loads(answer.as_numpy("DETECTIONS")[0])
    boxes = answer.as_numpy("BOXES")
    assert boxes.shape == (len(found["detections"]), 4)
    assert [label.decode() for label in answer.as_numpy("LABELS")] == [each["label"] for each in found["detections"]]
    assert answer.as_numpy("SCORES") == pytest.approx([each["score"] for each in found["detections"]], abs=1e-4)
    assert len(answer.as_numpy("CLASSES")) == len(boxes)
    return found


def is_the_cup(found: dict, tolerance: float = 8) -> bool:
    (cup,) = found["detections"]
    return cup["label"] == "cup" and np.allclose(cup["box"], [150, 24, 428, 307], atol=tolerance)


def test_the_shipped_photo_holds_one_cup(
    client: grpc.InferenceServerClient, photo: Image.Image, checkout: Path
) -> None:
    found = detect(client, (checkout / "samples" / "coffee.jpg").read_bytes())
    assert (found["width"], found["height"]) == (600, 400)
    assert is_the_cup(found)
    assert found["detections"][0]["score"] > 0.5
    assert detect(client, encoded(photo), CONFIDENCE=0.99)["detections"] == []


def test_a_photo_on_its_side_is_set_upright(client: grpc.InferenceServerClient, photo: Image.Image) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    found = detect(client, encoded(photo.transpose(Image.Transpose.ROTATE_90), "JPEG", quality=95, exif=exif))
    assert (found["width"], found["height"]) == (600, 400)
    assert is_the_cup(found)


@pytest.mark.parametrize("mode", ["CMYK", "RGBA"])
def test_other_kinds_of_colour_hold_the_same_cup(
    mode: str, client: grpc.InferenceServerClient, photo: Image.Image
) -> None:
    assert is_the_cup(detect(client, encoded(photo.convert(mode), "TIFF")), tolerance=25)


def test_pictures_of_unusual_size_are_answered(client: grpc.InferenceServerClient) -> None:
    assert detect(client, encoded(Image.new("L", (1, 1)))) == {"width": 1, "height": 1, "detections": []}
    huge = detect(client, encoded(Image.new("L", (10_000, 10_000)), "JPEG"))
    assert (huge["width"], huge["height"]) == (10_000, 10_000)


def test_a_bad_request_is_refused_by_the_inputs_name_and_the_next_one_works(
    client: grpc.InferenceServerClient, photo: Image.Image
) -> None:
    whole = encoded(photo, "JPEG")
    for content, bounds, message in [
        (b"", {}, "IMAGE: 0 bytes; the content of a picture file is expected"),
        (b"no picture", {}, "IMAGE: 10 bytes that are no picture"),
        (whole[: len(whole) // 2], {}, "IMAGE: a JPEG picture (RGB) that cannot be decoded"),
        (whole, {"CONFIDENCE": 1.5}, "CONFIDENCE: [1.5]; one number from 0 to 1 is expected"),
        (whole, {"IOU": np.nan}, "IOU: [nan]; one number from 0 to 1 is expected"),
    ]:
        with pytest.raises(grpc.InferenceServerException) as refused:
            detect(client, content, **bounds)
        assert message in refused.value.message()
        assert is_the_cup(detect(client, whole))


def test_many_pictures_at_once_each_get_their_own_answer(
    client: grpc.InferenceServerClient, photo: Image.Image
) -> None:
    """YOL-09, the three steps together."""
    shifted = []
    for offset in range(0, 160, 10):
        canvas = Image.new("RGB", (800, 560), (114, 114, 114))
        canvas.paste(photo, (offset, offset))
        shifted.append(encoded(canvas))
    alone = [detect(client, content) for content in shifted]
    with ThreadPoolExecutor(len(shifted)) as pool:
        together = list(pool.map(lambda content: detect(client, content), shifted))
    assert sum(len(found["detections"]) for found in alone) >= len(shifted) // 2
    for one, other in zip(alone, together, strict=True):
        assert [each["label"] for each in one["detections"]] == [each["label"] for each in other["detections"]]
        for left, right in zip(one["detections"], other["detections"], strict=True):
            assert np.allclose(left["box"], right["box"], atol=0.1)
