"""Model folders that exist already, written by hand or by another tool."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from builder.errors import DeclarationError
from builder.messages import parsed_config
from builder.model import Model, Tree, merged


def existing(folder: str | Path, **config: Any) -> Model:
    """The model of a folder: `config.pbtxt`, version folders and all that belongs to them.

    Args:
        folder: the model's folder. Its name is the model's.
        config: parts of ModelConfig to change. Without any the config stays as it is, comments included; with some,
            a new one is written where the folder is copied to.

    Raises:
        DeclarationError: there is no `config.pbtxt`, it does not parse, or there is no version folder.
    """
    path = Path(folder).absolute()
    file = path / "config.pbtxt"
    if not file.is_file():
        raise DeclarationError(
            where=path.name,
            found=f"there is no {file}",
            expected="a model folder with its config.pbtxt is needed",
            fix="Name the right folder, or declare the model with python(...) or onnx(...)",
        )
    versions = sorted(int(one.name) for one in path.iterdir() if one.is_dir() and one.name.isdigit())
    if not versions:
        raise DeclarationError(
            where=path.name,
            found="there is no version folder",
            expected="a folder named by a whole number from 1 is needed",
            fix=f"Make {path / '1'} with the model's files",
        )
    declared = parsed_config(file.read_text(encoding="utf-8"), str(file))
    declared.pop("name", None)
    return Model(
        name=path.name,
        config=merged(declared, config),
        profiles=_profiles(path, declared),
        trees=(Tree(source=path, target=""),),
        version=versions[-1],
        verbatim=not config,
    )


def _profiles(path: Path, declared: dict[str, Any]) -> dict[str, dict[str, Any]]:
    file = path / "configs" / "gpu.pbtxt"
    if not file.is_file():
        return {}
    other = parsed_config(file.read_text(encoding="utf-8"), str(file))
    other.pop("name", None)
    return {"gpu": other}
