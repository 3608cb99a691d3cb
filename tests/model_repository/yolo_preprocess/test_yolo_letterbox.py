"""How a picture is fitted into the network's input."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from yolo_letterbox import Letterbox, letterbox_for, pad, placed_size, resize_bilinear


@pytest.mark.parametrize(
    ("size", "placed", "pads"),
    [
        ((1920, 1080), (640, 360), (0, 140)),
        ((640, 480), (640, 480), (0, 80)),
        ((333, 500), (426, 640), (107, 0)),
        ((640, 431), (640, 431), (0, 104)),
        ((1, 1), (640, 640), (0, 0)),
        ((3000, 1), (640, 1), (0, 319)),
    ],
)
def test_any_picture_is_padded_to_exactly_the_served_size(size: tuple, placed: tuple, pads: tuple) -> None:
    """YOL-01."""
    letterbox = letterbox_for(*size, 640, 640)
    assert (letterbox.placed_width, letterbox.placed_height) == placed
    assert (letterbox.pad_x, letterbox.pad_y) == pads
    pixels = np.zeros((*placed[::-1], 3), np.uint8)
    images = pad(pixels, letterbox, 640, 640)
    assert images.shape == (3, 640, 640)
    assert images.dtype == np.uint8
    assert images.flags.c_contiguous
    inside = images[:, pads[1] : pads[1] + placed[1], pads[0] : pads[0] + placed[0]]
    assert not inside.any()
    assert (images == 114).sum() == 3 * (640 * 640 - placed[0] * placed[1])


def test_an_input_need_not_be_square() -> None:
    letterbox = letterbox_for(1000, 1000, 640, 320)
    assert (letterbox.placed_width, letterbox.placed_height, letterbox.pad_x, letterbox.pad_y) == (320, 320, 160, 0)
    assert pad(np.zeros((320, 320, 3), np.uint8), letterbox, 640, 320).shape == (3, 320, 640)


@given(st.integers(1, 20_000), st.integers(1, 20_000), st.sampled_from([320, 416, 640, 1280]))
@example(640, 430, 416)  # 279.5 rows: the nearest float32 to 0.65 would round to the other side
def test_the_scale_in_the_geometry_leads_back_to_the_placed_size(width: int, height: int, side: int) -> None:
    letterbox = letterbox_for(width, height, side, side)
    geometry = letterbox.tensor()
    assert geometry.dtype == np.float32
    assert placed_size(width, height, float(geometry[2])) == (letterbox.placed_width, letterbox.placed_height)
    assert letterbox.placed_width + 2 * letterbox.pad_x in (side - 1, side, side + 1)


def test_a_picture_of_the_wanted_size_stays_as_it_is() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (20, 30, 3), dtype=np.uint8)
    assert resize_bilinear(pixels, 30, 20) is pixels


@pytest.mark.parametrize(("width", "height"), [(7, 5), (64, 48), (15, 15), (1, 1), (200, 3)])
def test_scaling_is_bilinear_between_pixel_centres(width: int, height: int) -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (24, 31, 3), dtype=np.uint8)
    scaled = resize_bilinear(pixels, width, height)
    assert scaled.dtype == np.uint8
    assert np.abs(scaled.astype(float) - _bilinear(pixels, width, height)).max() <= 1


def _bilinear(pixels: np.ndarray, width: int, height: int) -> np.ndarray:
    """The same by the textbook, pixel by pixel, in floats."""
    rows, columns = pixels.shape[:2]
    wanted = np.zeros((height, width, 3))
    for y in range(height):
        for x in range(width):
            across = np.clip((x + 0.5) * columns / width - 0.5, 0, columns - 1)
            down = np.clip((y + 0.5) * rows / height - 0.5, 0, rows - 1)
            left, top = int(across), int(down)
            right, bottom = min(left + 1, columns - 1), min(top + 1, rows - 1)
            upper = pixels[top, left] * (1 - (across - left)) + pixels[top, right] * (across - left)
            lower = pixels[bottom, left] * (1 - (across - left)) + pixels[bottom, right] * (across - left)
            wanted[y, x] = upper * (1 - (down - top)) + lower * (down - top)
    return wanted


def test_geometry_holds_the_original_size_scale_and_padding() -> None:
    geometry = letterbox_for(1920, 1080, 416, 416).tensor()
    assert geometry.tolist() == pytest.approx([1920, 1080, 416 / 1920, 0, 91])


def test_a_letterbox_cannot_be_changed() -> None:
    letterbox = letterbox_for(10, 10, 416, 416)
    assert isinstance(letterbox, Letterbox)
    with pytest.raises(AttributeError):
        letterbox.pad_x = 3  # type: ignore[misc]
