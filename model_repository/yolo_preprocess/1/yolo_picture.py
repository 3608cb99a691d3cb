"""The bytes of a picture file as RGB pixels, scaled to where the letterbox wants them.

In: the content of a jpeg, png, webp, gif, bmp, tiff or ppm file. Out: uint8 [height, width, 3], RGB, upright.
Grey, palette, CMYK, transparent and 16-bit pictures become RGB; of an animation the first frame is taken. Decoding is
Pillow's, on the host, as a file comes from there; with a device the decoded pixels go there once, and stay.
"""

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from PIL import Image
from yolo_letterbox import Array, Letterbox, letterbox_for, library_of, resize_bilinear

FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "PPM", "AVIF")
ORIENTATION = 0x0112  # the EXIF tag
# What makes a stored picture upright: whether rows and columns change places, then which axes are reversed.
TURNS: dict[int, tuple[bool, tuple[int, ...]]] = {
    2: (False, (1,)),
    3: (False, (0, 1)),
    4: (False, (0,)),
    5: (True, ()),
    6: (True, (1,)),
    7: (True, (0, 1)),
    8: (True, (0,)),
}
AS_STORED: tuple[bool, tuple[int, ...]] = (False, ())


class PictureError(ValueError):
    """The picture in IMAGE cannot be used: what was found, what is expected, what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How large a picture may be.

    Attributes:
        max_pixels: Larger ones are refused.
        exact_pixels: Larger ones are scaled down while they are decoded, with an averaging filter: faster and in a
            tenth of the memory, but not the reference's pixels bit for bit.
    """

    max_pixels: int = 200_000_000
    exact_pixels: int = 40_000_000


def fitted_picture(
    content: bytes, input_width: int, input_height: int, limits: Limits, device: str | None = None
) -> tuple[Array, Letterbox]:
    """The picture scaled for the network's input (uint8 [placed_height, placed_width, 3], RGB), and where it belongs.

    Args:
        device: torch's name of the GPU on which to scale; None for numpy on the host.

    Raises:
        PictureError: It is empty, no picture, cut off, or has more pixels than the limit.
    """
    if not content:
        raise PictureError("IMAGE: 0 bytes; the content of a picture file is expected; send its bytes as they are")
    with _quiet_pillow():
        picture = _opened(content, limits.max_pixels)
        try:
            swap, reverse = TURNS.get(_orientation(picture), AS_STORED)
            width, height = picture.size[::-1] if swap else picture.size
            letterbox = letterbox_for(width, height, input_width, input_height)
            placed = (letterbox.placed_width, letterbox.placed_height)
            pixels, size = _decoded(picture, placed[::-1] if swap else placed, limits.exact_pixels)
        except PictureError:
            raise
        except Exception as error:  # decoders of broken files raise anything: OSError, SyntaxError, struct.error, ...
            raise PictureError(
                f"IMAGE: a {picture.format} picture ({picture.mode}) that cannot be decoded ({error}); "
                "a whole, undamaged file is expected; send it again, or as jpeg or png"
            ) from error
    scaled = resize_bilinear(pixels if device is None else _uploaded(pixels, device), *size)
    turned = scaled.swapaxes(0, 1) if swap else scaled
    return (library_of(turned).flip(turned, reverse) if reverse else turned), letterbox


def example() -> bytes:
    """A picture file of a usual size."""
    file = io.BytesIO()
    Image.new("RGB", (1920, 1080)).save(file, "JPEG")
    return file.getvalue()


def _uploaded(pixels: np.ndarray, device: str) -> Array:
    import torch

    return torch.tensor(pixels, device=device)


@contextmanager
def _quiet_pillow() -> Iterator[None]:
    """Pillow without its own limit of pixels (ours is checked instead) and without its warnings about odd files."""
    limit = Image.MAX_IMAGE_PIXELS
    Image.MAX_IMAGE_PIXELS = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        Image.MAX_IMAGE_PIXELS = limit


def _opened(content: bytes, max_pixels: int) -> Image.Image:
    Image.init()
    known = [name for name in FORMATS if name in Image.OPEN]  # a Pillow can be built without webp or avif
    try:
        picture = Image.open(io.BytesIO(content), formats=known)
    except Exception as error:  # a header that is cut off raises anything, too
        raise PictureError(
            f"IMAGE: {len(content)} bytes that are no picture (they begin with {content[:8].hex(' ')}); "
            "the content of a jpeg, png, webp, gif, bmp, tiff, ppm or avif file is expected; "
            "send the file's bytes as they are, not its pixels"
        ) from error
    width, height = picture.size
    if width * height > max_pixels:
        raise PictureError(
            f"IMAGE: {width} x {height} = {width * height} pixels; at most {max_pixels} are accepted; "
            "send a smaller picture, or raise the parameter max_pixels of yolo_preprocess"
        )
    return picture


def _orientation(picture: Image.Image) -> int:
    try:
        return picture.getexif().get(ORIENTATION, 1)
    except Exception:  # a damaged EXIF block is no reason to refuse the picture
        return 1


def _decoded(picture: Image.Image, size: tuple[int, int], exact_pixels: int) -> tuple[np.ndarray, tuple[int, int]]:
    """The picture's pixels, not yet turned upright, and the width and height that they are still to be scaled to."""
    if picture.width * picture.height <= exact_pixels or picture.mode.startswith("I"):
        return _rgb(picture), size
    # A JPEG decoder can give a half, a quarter or an eighth at once; `box` is the part of it that is picture.
    drafted = picture.draft("RGB", (size[0] * 2, size[1] * 2))
    box = drafted[1] if drafted else None
    if picture.mode in ("P", "1"):
        picture = picture.convert("L" if picture.mode == "1" else "RGB")
    small = picture.resize(size, Image.Resampling.BILINEAR, box=box, reducing_gap=2.0)
    return _rgb(small), size


def _rgb(picture: Image.Image) -> np.ndarray:
    """uint8 [height, width, 3]: transparency is dropped, 16 bits become 8."""
    if picture.mode == "F":
        raise PictureError(
            f"IMAGE: a {picture.format} picture of 32-bit floats; 8 or 16 bits per colour are expected; convert it"
        )
    if picture.mode.startswith("I"):  # 16 bits, or 32 that hold 16
        grey = (np.asarray(picture) >> 8).clip(0, 255).astype(np.uint8)
        return np.repeat(grey[:, :, None], 3, axis=2)
    return np.asarray(picture if picture.mode == "RGB" else picture.convert("RGB"))
