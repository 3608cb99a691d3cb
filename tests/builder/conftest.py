"""Small models, and what the rules say about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from builder import Catalog, Entry, Model, Pipeline, check_catalog, check_pipelines, entry, target
from builder.folder.reading import read_repository


def small_model(name: str, input: Sequence[Any], output: Sequence[Any], **config: Any) -> Model:
    """A Python model of some tensors; nothing of it is on disk."""
    declared = {"backend": "python", "input": list(input), "output": list(output), **config}
    return Model(name=name, config={key: value for key, value in declared.items() if value is not None})


@pytest.fixture
def model() -> Callable[..., Model]:
    """Makes a model: `model("pre", ["RAW UINT8 [-1]"], ["IMG FP32 [3]"], max_batch_size=8)`."""
    return small_model


@pytest.fixture
def told() -> Callable[..., list[str]]:
    """What the rules say about pipelines, a line with its code for each finding."""

    def ask(*pipelines: Pipeline, release: str = "embedded") -> list[str]:
        _, findings = check_pipelines(pipelines, release)
        return [f"{one.code} {one}" for one in findings]

    return ask


@pytest.fixture
def told_of_folder(tmp_path: Path) -> Callable[..., list[str]]:
    """What the rules say about a folder with these files, as `TK101 m/config.pbtxt:3 m, ...`, one line for each."""

    def ask(files: Mapping[str, str | bytes | None], profile: str = "cpu", release: str = "embedded") -> list[str]:
        for name, content in files.items():
            path = tmp_path / name
            (path if content is None else path.parent).mkdir(parents=True, exist_ok=True)
            if content is not None:
                path.write_bytes(content if isinstance(content, bytes) else content.encode())
        findings = check_catalog(read_repository(tmp_path, target(release), profile))
        return [f"{one.code} {one.file}:{one.line} {one}" for one in findings]

    return ask


@pytest.fixture
def told_of_configs() -> Callable[..., list[str]]:
    """What the rules say about configs as somebody wrote them, a line with its code for each finding."""

    def ask(*configs: dict[str, Any], profile: str = "cpu", release: str = "embedded", **more: Any) -> list[str]:
        entries: dict[str, Entry] = {one["name"]: entry(one["name"], one, **more) for one in configs}
        catalog = Catalog(entries=entries, target=target(release), profile=profile)
        return [f"{one.code} {one}" for one in check_catalog(catalog)]

    return ask
