"""Fit a picture into the square that the network takes: scale, keep the aspect ratio, pad with grey.

In: pixels of a picture, numpy's, or torch's on a GPU. Out: the network's input, by the same library in the same place,
and the geometry that leads back to the original picture.
It is Ultralytics' letterbox (centred, grey 114, small pictures are enlarged), with its interpolation bit for bit:
a network trained on those pixels gives the boxes of the reference only for those pixels.
"""

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

GREY = 114
Array = Any  # of numpy, or of torch


def library_of(array: Array) -> Any:
    """The module whose functions take this array: numpy, or torch, which is imported where such a tensor is."""
    return np if isinstance(array, np.ndarray) else sys.modules["torch"]


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


def pad(pixels: Array, letterbox: Letterbox, input_width: int, input_height: int) -> Array:
    """uint8 [3, input_height, input_width], RGB: the scaled picture on grey.

    Args:
        pixels: uint8 [placed_height, placed_width, 3], RGB.
    """
    canvas = filled(pixels, (input_height, input_width, 3), GREY)
    bottom, right = letterbox.pad_y + letterbox.placed_height, letterbox.pad_x + letterbox.placed_width
    canvas[letterbox.pad_y : bottom, letterbox.pad_x : right] = pixels
    if library_of(canvas) is np:
        return np.ascontiguousarray(canvas.transpose(2, 0, 1))
    return canvas.permute(2, 0, 1).contiguous()


def as_floats(pixels: Array, dtype: str) -> Array:
    """The pixels from 0 to 1, as `float32` or `float16`."""
    if library_of(pixels) is np:
        return (pixels.astype(np.float32) / np.float32(255)).astype(dtype, copy=False)
    floats = pixels.float()
    floats = floats / floats.new_tensor(255)  # by a number torch would multiply by its reciprocal on a GPU
    return floats.to(getattr(library_of(pixels), dtype))


def filled(like: Array, shape: tuple[int, ...], value: int) -> Array:
    """An array of one value, of the type of `like`, in its place."""
    return np.full(shape, value, like.dtype) if library_of(like) is np else like.new_full(shape, value)


def resize_bilinear(pixels: Array, width: int, height: int) -> Array:
    """uint8 [height, width, 3]: bilinear from the nearest four pixels, in OpenCV's fixed-point arithmetic.

    Args:
        pixels: uint8 [any, any, 3].
    """
    if tuple(pixels.shape[:2]) == (height, width):
        return pixels
    left, right, across = (_beside(pixels, one) for one in _samples(pixels.shape[1], width))
    above, below, down = (_beside(pixels, one) for one in _samples(pixels.shape[0], height))
    across, down = across.repeat(3) if library_of(pixels) is np else across.repeat_interleave(3), down[:, None]
    mixed = _along_rows(_picked(pixels, above, 0), left, right, across)
    lower = _along_rows(_picked(pixels, below, 0), left, right, across)
    mixed *= 2048 - down
    mixed >>= 16
    lower *= down
    lower >>= 16
    mixed += lower
    mixed += 2
    mixed >>= 2
    small = mixed.astype(np.uint8) if library_of(mixed) is np else mixed.to(pixels.dtype)
    return small.reshape(height, width, 3)


def _samples(size: int, wanted: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each wanted place: the two neighbours (int64) and the weight of the second (int32, 0 to 2048)."""
    places = ((np.arange(wanted) + 0.5) * (size / wanted) - 0.5).astype(np.float32)
    first = np.floor(places)
    weights = np.rint((places - first) * np.float32(2048)).astype(np.int32)
    neighbours = first.astype(np.int64)
    return neighbours.clip(0, size - 1), (neighbours + 1).clip(0, size - 1), weights


def _beside(pixels: Array, values: np.ndarray) -> Array:
    """The values by the library of the pixels, in their place."""
    library = library_of(pixels)
    return values if library is np else library.tensor(values, device=pixels.device)


def _picked(pixels: Array, indices: Array, axis: int) -> Array:
    return pixels.take(indices, axis=axis) if library_of(pixels) is np else pixels.index_select(axis, indices)


def _along_rows(rows: Array, left: Array, right: Array, across: Array) -> Array:
    """int32 [rows, 3 * wanted]: each row mixed at the wanted places, in 128ths."""
    mixed = _picked(rows, left, 1).reshape(len(rows), -1) * (2048 - across)
    mixed += _picked(rows, right, 1).reshape(len(rows), -1) * across
    mixed >>= 4
    return mixed
