"""Python models: code of one's own, run by Triton's Python backend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from builder.errors import DeclarationError
from builder.model import Artifact, Model, Tree
from builder.requirements import environment_path

ENVIRONMENT = "environment.tar.gz"


def python(
    name: str,
    *,
    code: str | Path,
    input: Sequence[str | Mapping[str, Any]],
    output: Sequence[str | Mapping[str, Any]],
    artifacts: Sequence[Artifact] = (),
    texts: Mapping[str, str] | None = None,
    profiles: Mapping[str, Mapping[str, Any]] | None = None,
    pass_through: Sequence[str] = (),
    usual: Mapping[str, Any] | None = None,
    requirements: Sequence[str] = (),
    **config: Any,
) -> Model:
    """A model that Triton's Python backend runs, on the CPU if nothing else is said.

    Args:
        code: the folder with `model.py` and the files beside it; it becomes the version folder.
        input, output: its tensors, as `"AUDIO FP32 [-1]"` or dicts by Triton's names.
        artifacts, texts: further files of the version folder, see `Model`.
        usual: sizes that vary, as a usual request has them, see `Model`.
        requirements: what it needs installed, as pip takes it: it then runs in an environment of its own, which the
            build makes, with these alone. Two models may need different versions of one package.
        config: any other part of ModelConfig, by Triton's names.

    Raises:
        DeclarationError: there is no `model.py` in `code`.
    """
    folder = Path(code)
    if not (folder / "model.py").is_file():
        raise DeclarationError(
            where=name,
            found=f"there is no model.py in {folder}",
            expected="a folder with model.py, as the Python backend wants it, is needed",
            fix="Write model.py there, with a class TritonPythonModel, or name the right folder",
        )
    return python_model(
        name,
        code=folder.absolute(),
        input=input,
        output=output,
        artifacts=artifacts,
        texts=texts,
        profiles=profiles,
        pass_through=pass_through,
        usual=usual,
        requirements=requirements,
        **config,
    )


def python_model(
    name: str,
    *,
    code: Path,
    input: Sequence[str | Mapping[str, Any]],
    output: Sequence[str | Mapping[str, Any]],
    artifacts: Sequence[Artifact] = (),
    texts: Mapping[str, str] | None = None,
    profiles: Mapping[str, Mapping[str, Any]] | None = None,
    pass_through: Sequence[str] = (),
    usual: Mapping[str, Any] | None = None,
    device_bytes: int = 0,
    serves_neighbours: bool = False,
    requirements: Sequence[str] = (),
    **config: Any,
) -> Model:
    """As `python`, for code that is looked for when the repository is written, not before."""
    environment = [Artifact(source=environment_path(requirements), target=ENVIRONMENT)] if requirements else []
    found = f"$$TRITON_MODEL_DIRECTORY/1/{ENVIRONMENT}"
    parameters = {**({"EXECUTION_ENV_PATH": found} if requirements else {}), **config.pop("parameters", {})}
    return Model(
        name=name,
        config={
            "backend": "python",
            "input": list(input),
            "output": list(output),
            "instance_group": [{"kind": "KIND_CPU", "count": 1}],
            **({"parameters": parameters} if parameters else {}),
            **config,
        },
        profiles=profiles or {},
        trees=(Tree(source=code, target="1"),),
        artifacts=(*artifacts, *environment),
        texts=texts or {},
        pass_through=tuple(pass_through),
        usual=usual or {},
        device_bytes=device_bytes,
        serves_neighbours=serves_neighbours,
        requirements=tuple(requirements),
    )
