"""In which order the models of a repository are loaded.

In: a repository folder, and the models that shall answer in the end. Out: names in order: models that others do not
wait for first, then the language models, then the ensembles. While a language model's engine measures what is free on
its GPU, nothing else may take or give back memory there: so each is loaded alone, and these last.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from starter.errors import RepositoryError

Kind = Literal["model", "language model", "ensemble"]
_STEP = re.compile(r'\bmodel_name\s*:\s*["\']([^"\']+)["\']')
_ENSEMBLE = re.compile(r'\bplatform\s*:\s*["\']ensemble["\']|\bensemble_scheduling\b')
_VLLM = re.compile(r'\bbackend\s*:\s*["\']vllm["\']')
_DECOUPLED = re.compile(r"\bdecoupled\s*:\s*(?:true|True|t|1)\b")
_PYTHON = re.compile(r'\bbackend\s*:\s*["\'](?:python|vllm)["\']')
_LIMITED = re.compile(r"\brate_limiter\s*:?\s*{")
_COMMENT = re.compile(r"^\s*#.*$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Model:
    """One model of a repository.

    Attributes:
        kind: what it is.
        is_decoupled: whether it streams; `is_python`: whether it runs in processes of its own.
        is_limited: whether it waits for resources before it runs.
        steps: of an ensemble, the models it is made of.
    """

    name: str
    kind: Kind
    is_decoupled: bool = False
    is_python: bool = False
    is_limited: bool = False
    steps: tuple[str, ...] = ()


def read_repository(repository: Path, config_name: str = "") -> dict[str, Model]:
    """Every model of a repository by name.

    Args:
        config_name: what the server gets as `--model-config-name`; a model without that file has its config.pbtxt.

    Raises:
        RepositoryError: there is no such folder, or no model in it.
    """
    if not repository.is_dir():
        raise RepositoryError(f"{repository}: no such folder; a model repository is needed. Mount it, or name another.")
    found = {}
    for folder in sorted(one for one in repository.iterdir() if one.is_dir()):
        chosen = folder / "configs" / f"{config_name}.pbtxt"
        config = chosen if config_name and chosen.is_file() else folder / "config.pbtxt"
        if config.is_file():
            found[folder.name] = _model(folder, config.read_text(encoding="utf-8"))
    if not found:
        raise RepositoryError(f"{repository}: no config.pbtxt in any folder of it. Run `tritonkit build` first.")
    return found


def start_order(models: Mapping[str, Model], wanted: Iterable[str] = ()) -> tuple[str, ...]:
    """The models to load for `wanted` (all of them if none is named), in order.

    Raises:
        RepositoryError: a model is wanted that the repository does not have, or ensembles contain each other.
    """
    needed: dict[str, int] = {}
    for name in wanted or models:
        _need(name, models, needed, ())
    kinds = ("model", "language model", "ensemble")
    return tuple(sorted(needed, key=lambda name: (kinds.index(models[name].kind), needed[name], name)))


def _need(name: str, models: Mapping[str, Model], needed: dict[str, int], above: tuple[str, ...]) -> int:
    """Note a model and what it is made of; returns how many ensembles lie inside each other below it."""
    if name not in models:
        by = f", a step of {above[-1]}" if above else ""
        raise RepositoryError(f"{name}{by}: the repository has no such model; it has {', '.join(models)}.")
    if name in above:
        raise RepositoryError(f"{' > '.join((*above, name))}: ensembles that contain each other cannot be loaded.")
    depth = max((_need(step, models, needed, (*above, name)) + 1 for step in models[name].steps), default=0)
    needed[name] = max(depth, needed.get(name, 0))
    return depth


def _model(folder: Path, text: str) -> Model:
    text = _COMMENT.sub("", text)
    if _ENSEMBLE.search(text):
        return Model(name=folder.name, kind="ensemble", steps=tuple(dict.fromkeys(_STEP.findall(text))))
    decoupled = _DECOUPLED.search(text) is not None
    engine = _VLLM.search(text) is not None or (decoupled and any(folder.glob("*/model.json")))
    return Model(
        name=folder.name,
        kind="language model" if engine else "model",
        is_decoupled=decoupled or engine,
        is_python=_PYTHON.search(text) is not None,
        is_limited=_LIMITED.search(text) is not None,
    )
