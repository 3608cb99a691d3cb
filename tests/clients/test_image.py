import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from clients.errors import ArrayError
from clients.image import load_image

PIXELS = np.random.default_rng(0).integers(0, 255, (5, 7, 3), dtype=np.uint8)


def opened(data: np.ndarray) -> Image.Image:
    return Image.open(io.BytesIO(data.tobytes()))


def test_a_file_goes_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "photo.jpg"
    Image.fromarray(PIXELS).save(path)
    for source in (path, str(path), path.read_bytes(), np.fromfile(path, dtype=np.uint8)):
        assert load_image(source).tobytes() == path.read_bytes()


def test_even_what_is_no_picture_goes_so_that_the_server_can_answer() -> None:
    assert load_image(b"no picture").tobytes() == b"no picture"


@pytest.mark.parametrize("pixels", [PIXELS, PIXELS[:, :, 0], np.dstack([PIXELS, PIXELS[:, :, :1]]), PIXELS[::-1]])
def test_pixels_are_packed_without_loss(pixels: np.ndarray) -> None:
    assert np.array_equal(np.asarray(opened(load_image(pixels))), pixels)


@pytest.mark.parametrize("mode", ["RGB", "L", "RGBA", "P", "CMYK", "I;16", "F"])
def test_a_pil_image_of_any_mode_is_packed(mode: str) -> None:
    assert opened(load_image(Image.new(mode, (7, 5)))).size == (7, 5)


def test_a_rotated_pil_image_is_packed_as_it_is_shown(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(PIXELS).save(tmp_path / "rotated.jpg", exif=exif)
    with Image.open(tmp_path / "rotated.jpg") as picture:
        assert picture.size == (7, 5)
        assert opened(load_image(picture)).size == (5, 7)


@pytest.mark.parametrize(
    "source",
    [np.zeros((5, 7, 3)), np.zeros((5, 7, 2), np.uint8), np.zeros((0, 7, 3), np.uint8), np.zeros(9), [1, 2], 3],
)
def test_what_is_no_picture_in_memory_is_refused(source: object) -> None:
    with pytest.raises(ArrayError, match="IMAGE: "):
        load_image(source)
