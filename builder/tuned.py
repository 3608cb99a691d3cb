"""Measured settings of models, in `tuned.toml` beside the pipelines: `tritonkit tune` writes it, every build reads it.

One table for each model and profile, with parts of its ModelConfig by Triton's names; a line above says what was
measured. Delete a table, or the file, and the model is as its code says.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from builder.errors import DeclarationError
from builder.model import PROFILES, Model, merged, thaw, written_out
from builder.pipeline import Pipeline, Step
from builder.tensors import did_you_mean

FILE = "tuned.toml"
KEYS = ("max_batch_size", "dynamic_batching", "instance_group", "parameters")
HEADER = "# What `tritonkit tune` measured; `tritonkit build` puts it into the models. Delete a table to undo it.\n"

Tuned = Mapping[str, Mapping[str, Mapping[str, Any]]]  # by model, by profile: parts of a config


def read_tuned(folder: Path) -> Tuned:
    """The settings in a folder's file; none if it has no such file.

    Raises:
        DeclarationError: it is no TOML, or has a key that nobody knows.
    """
    path = folder / FILE
    if not path.is_file():
        return {}
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise _error(
            "the file", str(error), "TOML is needed", "Correct it, or let `tritonkit tune` write it"
        ) from error
    for model, profiles in values.items():
        _check(f"[{model}]", profiles, PROFILES)
        for profile, parts in profiles.items():
            _check(f"[{model}.{profile}]", parts, KEYS)
    return values


def with_tuned(pipeline: Pipeline, tuned: Tuned) -> Pipeline:
    """The pipeline with these settings in its models; the same one where they concern none of them."""
    models = {model.name: _set(model, tuned[model.name]) for model in pipeline.models() if model.name in tuned}
    if not models:
        return pipeline
    steps = [
        Step(model=models.get(step.model.name, step.model), input_map=step.input_map, output_map=step.output_map)
        for step in pipeline.steps
    ]
    return Pipeline(
        name=pipeline.name,
        steps=steps,
        inputs=pipeline.inputs,
        outputs=pipeline.outputs,
        bare_suffix=pipeline.bare_suffix,
        **thaw(pipeline.config),
    )


def tuned_text(tuned: Tuned, remarks: Mapping[str, str]) -> str:
    """The file's text. `remarks`: by model, what was measured."""
    lines = [HEADER]
    for model in sorted(tuned):
        lines += [f"# {line}\n" for line in remarks.get(model, "").splitlines()]
        for profile, parts in tuned[model].items():
            lines.append(f"[{model}.{profile}]\n")
            lines += [f"{key} = {_toml(parts[key])}\n" for key in KEYS if key in parts]
            lines.append("\n")
    return "".join(lines).rstrip("\n") + "\n"


def remarks_of(folder: Path) -> dict[str, str]:
    """By model, the comment lines right above its first table in a folder's file."""
    path = folder / FILE
    found: dict[str, str] = {}
    held: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
        if line.startswith("#"):
            held.append(line.removeprefix("#").strip())
            continue
        if line.startswith("["):
            found.setdefault(line[1:].partition(".")[0], "\n".join(one for one in held if f"# {one}\n" != HEADER))
        held = []
    return found


def _set(model: Model, profiles: Mapping[str, Mapping[str, Any]]) -> Model:
    changed = thaw(model.profiles)
    for profile, parts in profiles.items():
        changed[profile] = merged(changed.get(profile, {}), written_out(parts))
    return replace(model, profiles=changed)


def _check(where: str, values: Any, known: tuple[str, ...]) -> None:
    if not isinstance(values, dict):
        raise _error(where, f"{values!r}", "a table is needed", "Write one, or delete the line")
    for key in values:
        if key not in known:
            raise _error(
                where,
                f"{key} is nothing that is tuned{did_you_mean(key, known)}",
                f"one of {', '.join(known)} is needed",
                "Correct it, or write it where the model is declared",
            )


def _toml(value: Any) -> str:
    """A value in TOML, on one line."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(one)}" for key, one in value.items()) + " }" if value else "{}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml(one) for one in value) + "]"
    return json.dumps(value)


def _error(where: str, found: str, expected: str, fix: str) -> DeclarationError:
    return DeclarationError(where=f"{FILE}, {where}", found=found, expected=expected, fix=fix)
