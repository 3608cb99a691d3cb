"""What the builder costs besides its work: bounds that a busy machine keeps; benchmarks/small_costs.py is exact."""

from __future__ import annotations

import importlib
import sys
import time
from pathlib import Path

import pytest

import builder
from builder.repository import write_repository


def test_every_public_name_is_imported_when_asked_for_and_no_other() -> None:
    for name in builder.__all__:
        assert getattr(builder, name).__name__ == name
        assert name in dir(builder)
    with pytest.raises(AttributeError, match="module 'builder' has no attribute 'Pipelines'"):
        builder.Pipelines  # noqa: B018


@pytest.mark.timing
def test_three_hundred_models_are_rendered_and_written_in_a_second(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(checkout / "benchmarks"))
    (tmp_path / "code").mkdir()
    plan = importlib.import_module("small_costs").chain(300, tmp_path / "code")
    del sys.modules["small_costs"]
    began = time.process_time()
    write_repository(plan, tmp_path / "repository", exports=tmp_path)
    assert time.process_time() - began < 1.0
    assert len(list((tmp_path / "repository").glob("model_*/config.pbtxt"))) == 300
