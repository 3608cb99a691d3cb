"""The models of this folder, and the real server over them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from embedded import EmbeddedServer


@pytest.fixture(scope="session")
def models() -> Path:
    """A repository of small models that do right and wrong."""
    return Path(__file__).parent / "models"


@pytest.fixture(scope="session")
def models_served(models: Path, checkout: Path) -> Iterator[EmbeddedServer]:
    """The real server over the same folders."""
    with EmbeddedServer(models, cache=checkout / ".cache", stop_timeout_s=3) as server:
        yield server
