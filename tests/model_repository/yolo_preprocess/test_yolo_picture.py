"""Picture files of every kind, whole and damaged."""

import contextlib
import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yolo_picture
from PIL import Image
from yolo_picture import Limits, PictureError, fitted_picture

COLOURS = [
    (220, 40, 40),
    (40, 200, 40),
    (40, 40, 220),
    (230, 230, 60),
]  # left top, right top, left bottom, right bottom


def quarters(width: int = 64, height: int = 48) -> Image.Image:
    """A picture of four colours, one in each quarter."""
    picture = Image.new("RGB", (width, height))
    for number, colour in enumerate(COLOURS):
        corner = ((number % 2) * width // 2, (number // 2) * height // 2)
        picture.paste(colour, (*corner, corner[0] + width // 2, corner[1] + height // 2))
    return picture


def encoded(picture: Image.Image, kind: str, **options: object) -> bytes:
    file = io.BytesIO()
    picture.save(file, kind, **options)
    return file.getvalue()


def middles(content: bytes, side: int = 64) -> np.ndarray:
    """The colours at the four quarters' centres, as the network would see them."""
    pixels, letterbox = fitted_picture(content, side, side, Limits())
    height, width = pixels.shape[:2]
    assert (width, height) == (letterbox.placed_width, letterbox.placed_height)
    return np.array([pixels[y, x] for y in (height // 4, 3 * height // 4) for x in (width // 4, 3 * width // 4)], int)


def grey(colours: list[tuple[int, int, int]]) -> np.ndarray:
    values = [round(0.299 * r + 0.587 * g + 0.114 * b) for r, g, b in colours]
    return np.repeat(np.array(values)[:, None], 3, axis=1)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("PNG", {}),
        ("JPEG", {"quality": 95}),
        ("WEBP", {"lossless": True}),
        ("BMP", {}),
        ("TIFF", {}),
        ("PPM", {}),
        ("GIF", {}),
    ],
)
def test_every_kind_of_file_gives_its_colours(kind: str, options: dict) -> None:
    assert np.abs(middles(encoded(quarters(), kind, **options)) - COLOURS).max() <= 6


@pytest.mark.parametrize("mode", ["RGBA", "P", "CMYK", "L", "LA", "1", "I;16"])
def test_every_mode_becomes_rgb(mode: str) -> None:
    if mode == "I;16":
        picture = Image.fromarray(np.asarray(quarters().convert("L")).astype(np.uint16) * 256)
    elif mode == "P":
        picture = quarters().quantize(16)
    else:
        picture = quarters().convert(mode, dither=Image.Dither.NONE)
    content = encoded(picture, "TIFF" if mode == "CMYK" else "PNG")
    wanted = grey(COLOURS) if mode in ("L", "LA", "I;16") else np.array(COLOURS)
    if mode == "1":
        wanted = np.where(grey(COLOURS) > 127, 255, 0)
    assert np.abs(middles(content) - wanted).max() <= 6


def test_a_cmyk_jpeg_as_photo_editors_write_it_is_not_inverted() -> None:
    assert np.abs(middles(encoded(quarters().convert("CMYK"), "JPEG", quality=95)) - COLOURS).max() <= 12


def test_transparency_is_dropped_and_the_colour_kept() -> None:
    picture = quarters().convert("RGBA")
    picture.putalpha(10)
    assert np.abs(middles(encoded(picture, "PNG")) - COLOURS).max() == 0


def test_the_first_frame_of_an_animation_counts() -> None:
    later = [Image.new("RGB", (64, 48), "black")] * 2
    for kind, options in (("GIF", {}), ("WEBP", {"lossless": True}), ("PNG", {})):
        content = encoded(quarters(), kind, save_all=True, append_images=later, **options)
        assert np.abs(middles(content) - COLOURS).max() <= 6, kind


@pytest.mark.parametrize("orientation", range(1, 9))
def test_the_exif_orientation_is_followed(orientation: int) -> None:
    turn = Image.Transpose  # how Pillow stores a picture that a camera held so
    stored_by = [turn.FLIP_LEFT_RIGHT, turn.ROTATE_180, turn.FLIP_TOP_BOTTOM, turn.TRANSPOSE, turn.ROTATE_90,
                 turn.TRANSVERSE, turn.ROTATE_270]  # fmt: skip
    upright = quarters()
    stored = upright.transpose(stored_by[orientation - 2]) if orientation > 1 else upright
    exif = Image.Exif()
    exif[0x0112] = orientation
    content = encoded(stored, "JPEG", exif=exif, quality=95)
    assert np.abs(middles(content) - COLOURS).max() <= 6
    letterbox = fitted_picture(content, 64, 64, Limits())[1]
    assert (letterbox.width, letterbox.height) == upright.size


def test_a_damaged_exif_block_does_not_cost_the_picture() -> None:
    content = encoded(quarters(), "JPEG", quality=95, exif=b"Exif\0\0MM\0*\0\0\0\x08\xff\xff garbage")
    assert np.abs(middles(content) - COLOURS).max() <= 6


def test_one_pixel_is_enlarged() -> None:
    pixels, letterbox = fitted_picture(encoded(Image.new("RGB", (1, 1), (9, 8, 7)), "PNG"), 416, 416, Limits())
    assert pixels.shape == (416, 416, 3)
    assert (pixels == (9, 8, 7)).all()
    assert (letterbox.width, letterbox.height) == (1, 1)


def test_a_large_picture_is_scaled_while_decoded_and_looks_the_same() -> None:
    smooth = np.random.default_rng(2).integers(0, 256, (6, 8, 3), dtype=np.uint8)
    picture = Image.fromarray(smooth).resize((803, 601), Image.Resampling.BICUBIC)
    exif = Image.Exif()
    exif[0x0112] = 8
    for content in (encoded(picture, "PNG"), encoded(picture, "JPEG", quality=95, exif=exif)):
        exact, at = fitted_picture(content, 64, 64, Limits())
        scaled, where = fitted_picture(content, 64, 64, Limits(exact_pixels=1000))
        assert at == where
        assert exact.shape == scaled.shape
        assert np.abs(exact.astype(int) - scaled).mean() < 2


@pytest.mark.parametrize("mode", ["P", "1", "I;16", "CMYK", "RGBA"])
def test_a_large_picture_of_any_mode_is_decoded(mode: str) -> None:
    picture = quarters(200, 200)
    picture = Image.fromarray(np.full((200, 200), 9000, np.uint16)) if mode == "I;16" else picture.convert(mode)
    content = encoded(picture, "TIFF" if mode == "CMYK" else "PNG")
    assert fitted_picture(content, 32, 32, Limits(exact_pixels=1))[0].shape == (32, 32, 3)


WHOLE = encoded(Image.effect_noise((300, 200), 80).convert("RGB"), "JPEG")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "IMAGE: 0 bytes; the content of a picture file is expected; "),
        (b"no picture at all", "IMAGE: 17 bytes that are no picture (they begin with 6e 6f 20 70 69 63 74 75); "),
        (bytes(3 * 64 * 64), "IMAGE: 12288 bytes that are no picture"),
        (WHOLE[: len(WHOLE) // 2], "IMAGE: a JPEG picture (RGB) that cannot be decoded (image file is truncated"),
        (WHOLE[:100], "IMAGE: "),
        (encoded(quarters(), "PNG")[:-30], "IMAGE: a PNG picture (RGB) that cannot be decoded ("),
        (encoded(Image.new("F", (4, 4)), "TIFF"), "IMAGE: a TIFF picture of 32-bit floats; 8 or 16 bits"),
    ],
    ids=["empty", "text", "pixels", "truncated", "header", "png", "floats"],
)
def test_what_is_no_whole_picture_is_refused_by_the_inputs_name(content: bytes, message: str) -> None:
    with pytest.raises(PictureError) as refused:
        fitted_picture(content, 416, 416, Limits())
    assert str(refused.value).startswith(message)
    assert str(refused.value).count("; ") >= 2, "found; expected; what to do"


def test_every_way_to_cut_off_a_file_gives_an_error_or_a_picture() -> None:
    for whole in (WHOLE, encoded(quarters(), "PNG"), encoded(quarters(), "WEBP"), encoded(quarters(), "GIF")):
        for length in range(0, len(whole), max(len(whole) // 60, 1)):
            try:
                pixels, _ = fitted_picture(whole[:length], 32, 32, Limits())
            except PictureError as error:
                assert str(error).startswith("IMAGE: ")
            else:
                assert pixels.shape[2] == 3


def test_a_picture_above_the_limit_is_refused_before_it_is_decoded() -> None:
    content = encoded(Image.new("1", (20_000, 10_001)), "PNG")
    with pytest.raises(PictureError) as refused:
        fitted_picture(content, 416, 416, Limits())
    assert str(refused.value) == (
        "IMAGE: 20000 x 10001 = 200020000 pixels; at most 200000000 are accepted; "
        "send a smaller picture, or raise the parameter max_pixels of yolo_preprocess"
    )


def test_pillows_own_limit_is_as_it_was_afterwards() -> None:
    before = Image.MAX_IMAGE_PIXELS
    for content in (encoded(quarters(), "PNG"), b"nothing"):
        with contextlib.suppress(PictureError):
            fitted_picture(content, 32, 32, Limits())
        assert before == Image.MAX_IMAGE_PIXELS


@pytest.mark.parametrize(("kind", "megabytes"), [("JPEG", 200), ("PNG", 700)])
def test_ten_thousand_pixels_square_take_little_memory(kind: str, megabytes: int, tmp_path: Path) -> None:
    """In a process of its own, with warnings as errors, so that Pillow's are seen."""
    row = np.arange(10_000, dtype=np.uint8)
    picture = Image.fromarray(np.broadcast_to(row, (10_000, 10_000)))
    picture.save(tmp_path / "large", kind, **({"compress_level": 1} if kind == "PNG" else {}))
    code = (
        "import re, sys; sys.path.append(sys.argv[1]); from yolo_picture import Limits, fitted_picture\n"
        "pixels, box = fitted_picture(open(sys.argv[2], 'rb').read(), 416, 416, Limits())\n"
        "peak = re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1]\n"
        "print(pixels.shape, box.width, int(peak) // 1024)"
    )
    folder = str(Path(yolo_picture.__file__).parent)
    command = [sys.executable, "-W", "error", "-c", code, folder, str(tmp_path / "large")]
    printed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    assert printed.startswith("(416, 416, 3) 10000 ")
    assert int(printed.split()[-1]) < megabytes
