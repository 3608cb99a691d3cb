"""A picture in any common form comes in; the bytes of an image file go out, as the pipelines take it.

A file goes as it is: the server decodes it, so that every client sees the same boxes. Pixels are packed as PNG, which
loses nothing.
"""

import io
from pathlib import Path
from typing import Any

import numpy as np

from clients.errors import ArrayError

Image = Any  # a path, the bytes of a file, uint8 pixels, or a PIL image (imported only when one is used)


def load_image(source: Image) -> np.ndarray:
    """The bytes of an image file: uint8 [n].

    Args:
        source: a path, the bytes of a file (bytes, or uint8 [n]), pixels uint8 [height, width] grey, [height, width,
            3] RGB
            or [height, width, 4] RGBA, or a PIL image.

    Raises:
        ArrayError: anything else.
    """
    if isinstance(source, str | Path):
        return np.frombuffer(Path(source).read_bytes(), dtype=np.uint8)
    if isinstance(source, bytes | bytearray | memoryview):
        return np.frombuffer(source, dtype=np.uint8)
    if isinstance(source, np.ndarray):
        return _from_array(source)
    return _from_pil(source)


def _from_array(array: np.ndarray) -> np.ndarray:
    if array.dtype == np.uint8 and array.ndim == 1:
        return array
    is_picture = array.ndim == 2 or (array.ndim == 3 and array.shape[2] in (3, 4))
    if array.dtype != np.uint8 or not is_picture or array.size == 0:
        expected = "uint8 [height, width], [height, width, 3] or [height, width, 4] is needed"
        advice = "Floats of 0 to 1: (pixels * 255).round().astype(np.uint8)."
        raise ArrayError("IMAGE", f"{array.dtype} {list(array.shape)}", expected, advice)
    from PIL import Image as pil

    return _png(pil.fromarray(array))


def _from_pil(source: Any) -> np.ndarray:
    from PIL import Image as pil
    from PIL import ImageOps

    if not isinstance(source, pil.Image):
        expected = "a path, the bytes of a file, an array of pixels or a PIL image is needed"
        raise ArrayError("IMAGE", f"a {type(source).__name__}", expected)
    upright = ImageOps.exif_transpose(source)
    is_png_mode = upright.mode in ("1", "L", "LA", "P", "RGB", "RGBA")
    return _png(upright if is_png_mode else upright.convert("RGB"))


def _png(picture: Any) -> np.ndarray:
    packed = io.BytesIO()
    picture.save(packed, format="PNG", compress_level=1)
    return np.frombuffer(packed.getvalue(), dtype=np.uint8)
