"""Fit a picture into the square that the network takes: scale, keep the aspect ratio, pad with grey.

In: pixels of a picture. Out: the network's input, and the geometry that leads back to the original picture.
It is Ultralytics' letterbox (centred, grey 114, small pictures are enlarged), with its interpolation bit for bit:
a network trained on those pixels gives the boxes of the reference only for those pixels.
"""

from dataclasses import dataclass

import numpy as np

GREY = 114


@dataclass(frozen=True, slots=True, kw_only=True)
class Letterbox:
    """Where a picture lies inside the network's input.

    Attributes:
        width: Of the original picture, in pixels, as a person sees it (after EXIF rotation).
        height: Likewise.
        scale: Pixels of the network's input per pixel of the original picture.
        placed_width: Of the scaled picture inside the network's input.
        placed_height: Likewise.
        pad_x: Columns of grey left of it.
        pad_y: Rows of grey above it.
    """

    width: int
    height: int
    scale: float
    placed_width: int
    placed_height: int
    pad_x: int
    pad_y: int

    def tensor(self) -> np.ndarray:
        """float32 [5]: original width and height in pixels, scale, pad x, pad y in pixels of the network's input."""
        return np.array([self.width, self.height, self._scale(), self.pad_x, self.pad_y], np.float32)

    def _scale(self) -> np.float32:
        """The scale as a float32 from which rounding finds the placed size again: the nearest, or one beside it."""
        near = np.float32(self.scale)
        beside = (np.nextafter(near, np.float32(np.inf)), np.nextafter(near, np.float32(0)))
        wanted = (self.placed_width, self.placed_height)
        return next((s for s in (near, *beside) if placed_size(self.width, self.height, float(s)) == wanted), near)


def placed_size(width: int, height: int, scale: float) -> tuple[int, int]:
    """Width and height of a scaled picture; very thin ones keep one pixel."""
    return max(round(width * scale), 1), max(round(height * scale), 1)


def letterbox_for(width: int, height: int, input_width: int, input_height: int) -> Letterbox:
    """Where a picture of this size lies inside a network's input of that size."""
    scale = min(input_height / height, input_width / width)
    placed_width, placed_height = placed_size(width, height, scale)
    return Letterbox(
        width=width,
        height=height,
        scale=scale,
        placed_width=placed_width,
        placed_height=placed_height,
        pad_x=round((input_width - placed_width) / 2 - 0.1),
        pad_y=round((input_height - placed_height) / 2 - 0.1),
    )


def pad(pixels: np.ndarray, letterbox: Letterbox, input_width: int, input_height: int) -> np.ndarray:
    """float32 [3, input_height, input_width], RGB, 0 to 1: the scaled picture on grey.

    Args:
        pixels: uint8 [placed_height, placed_width, 3], RGB.
    """
    canvas = np.full((input_height, input_width, 3), GREY, np.uint8)
    bottom, right = letterbox.pad_y + letterbox.placed_height, letterbox.pad_x + letterbox.placed_width
    canvas[letterbox.pad_y : bottom, letterbox.pad_x : right] = pixels
    return np.ascontiguousarray(canvas.transpose(2, 0, 1)).astype(np.float32) / np.float32(255)


def resize_bilinear(pixels: np.ndarray, width: int, height: int) -> np.ndarray:
    """uint8 [height, width, 3]: bilinear from the nearest four pixels, in OpenCV's fixed-point arithmetic.

    Args:
        pixels: uint8 [any, any, 3].
    """
    if pixels.shape[:2] == (height, width):
        return pixels
    left, right, across = _samples(pixels.shape[1], width)
    above, below, down = _samples(pixels.shape[0], height)
    mixed = _along_rows(pixels.take(above, axis=0), left, right, across)
    lower = _along_rows(pixels.take(below, axis=0), left, right, across)
    mixed *= 2048 - down[:, None]
    mixed >>= 16
    lower *= down[:, None]
    lower >>= 16
    mixed += lower
    mixed += 2
    mixed >>= 2
    return mixed.astype(np.uint8).reshape(height, width, 3)


def _samples(size: int, wanted: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each wanted place: the two neighbours (int64) and the weight of the second (int32, 0 to 2048)."""
    places = ((np.arange(wanted) + 0.5) * (size / wanted) - 0.5).astype(np.float32)
    first = np.floor(places)
    weights = np.rint((places - first) * np.float32(2048)).astype(np.int32)
    neighbours = first.astype(np.int64)
    return neighbours.clip(0, size - 1), (neighbours + 1).clip(0, size - 1), weights


def _along_rows(rows: np.ndarray, left: np.ndarray, right: np.ndarray, across: np.ndarray) -> np.ndarray:
    """int32 [rows, 3 * wanted]: each row mixed at the wanted places, in 128ths."""
    weights = across.repeat(3)
    mixed = rows.take(left, axis=1).reshape(len(rows), -1) * (2048 - weights)
    mixed += rows.take(right, axis=1).reshape(len(rows), -1) * weights
    mixed >>= 4
    return mixed
