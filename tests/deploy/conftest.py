"""A deployment of the shipped assistant on an L4, as the commands make it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.__main__ import planned
from deploy.facts import Facts
from deploy.kubernetes.kustomize import manifests
from deploy.wishes import Wishes


@pytest.fixture(scope="session")
def facts(checkout: Path) -> Facts:
    """The assistant on one L4."""
    import os

    before = Path.cwd()
    os.chdir(checkout)
    try:
        return planned("assistant", "L4", 8, None, None, None)
    finally:
        os.chdir(before)


@pytest.fixture(scope="session")
def wishes() -> Wishes:
    """What a person asked for, none of it the default."""
    return Wishes(
        namespace="here", least=2, most=7, queue_s=0.08, drain_s=45, models_claim="claim", inbound="in", outbound="out"
    )


@pytest.fixture(scope="session")
def objects(facts: Facts, wishes: Wishes) -> dict[str, Any]:
    """Every YAML file, read back, by path."""
    made = manifests(facts, wishes)
    return {path: yaml.safe_load(text) for path, text in made.items() if path.endswith(".yaml")}
