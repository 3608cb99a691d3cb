"""The pipeline that the field cases are told about: `pre`, `det`, `post`, and the ensemble `pipe` over them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from builder.catalog import target
from builder.check import check_catalog
from builder.findings import Finding
from builder.folder.reading import read_repository


@pytest.fixture
def findings(tmp_path: Path) -> Callable[..., tuple[Finding, ...]]:
    """What the rules say of a repository of these files."""

    def ask(files: Mapping[str, str | bytes | None], *, release: str = "embedded", profile: str = "cpu"):
        for name, content in files.items():
            path = tmp_path / name
            (path if content is None else path.parent).mkdir(parents=True, exist_ok=True)
            if content is not None:
                path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return check_catalog(read_repository(tmp_path, target(release), profile))

    return ask
