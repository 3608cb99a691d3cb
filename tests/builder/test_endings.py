"""Mistakes in one model that end or hang a whole server: that the rules know them, and that a real 2.51 does so.

Each needs a start of its own, so these are slow; they are why the fuzzer leaves such repositories out.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from builder.catalog import target
from builder.check import check_catalog
from builder.folder.reading import read_repository

CODE = "class TritonPythonModel:\n    def execute(self, requests):\n        return [one for one in requests]\n"
CONFIG = """backend: "python"
input [ { name: "A" data_type: TYPE_FP32 dims: [ 3 ] } ]
output [ { name: "B" data_type: TYPE_FP32 dims: [ 3 ] } ]
"""
GOOD = {"good/config.pbtxt": CONFIG, "good/1/model.py": CODE}
LABELLED = CONFIG.replace('"B" data_type', '"B" label_filename: "labels" data_type')


def ensemble(model: str) -> str:
    """An ensemble of one step."""
    maps = 'input_map { key: "A" value: "A" } output_map { key: "B" value: "B" }'
    step = f'step {{ model_name: "{model}" model_version: -1 {maps} }}'
    return CONFIG.replace('backend: "python"', 'platform: "ensemble"') + f"ensemble_scheduling {{ {step} }}"


ENDINGS: dict[str, tuple[str, Mapping[str, str | None]]] = {
    "version beyond 64 bits": ("TK811", {"m/config.pbtxt": CONFIG, "m/99999999999999999999/model.py": CODE}),
    "folder taken for another version": ("TK813", {"m/config.pbtxt": CONFIG, "m/1a/model.py": CODE}),
    "no model.py": ("TK814", {"m/config.pbtxt": CONFIG, "m/1/other.py": CODE}),
    "config is a folder": ("TK815", {"m/config.pbtxt/x": "", "m/1/model.py": CODE}),
    "labels are a folder": ("TK821", {"m/config.pbtxt": LABELLED, "m/1/model.py": CODE, "m/labels/x": ""}),
    "metric tag": ("TK124", {"m/config.pbtxt": CONFIG + 'metric_tags { key: "a-b" value: "c" }', "m/1/model.py": CODE}),
    "more sequences than memory holds": (
        "TK627",
        {"m/config.pbtxt": CONFIG + "max_batch_size: 2147483647 sequence_batching { }", "m/1/model.py": CODE},
    ),
    "no agents": ("TK125", {"m/config.pbtxt": CONFIG + "model_repository_agents { }", "m/1/model.py": CODE}),
    "batch output without target": ("TK633", {"m/config.pbtxt": CONFIG + "batch_output [ { } ]", "m/1/model.py": CODE}),
    "ensemble of one that contains itself": (
        "TK312",
        {"e/config.pbtxt": ensemble("e"), "e/1/x": "", "f/config.pbtxt": ensemble("e"), "f/1/x": ""},
    ),
}


@pytest.fixture(params=ENDINGS, ids=lambda name: name)
def ending(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path]:
    """The code of the rule, and a repository with the mistake beside a good model."""
    code, files = ENDINGS[request.param]
    for name, content in {**GOOD, **files}.items():
        path = tmp_path / "repository" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content or "", encoding="utf-8")
    return code, tmp_path / "repository"


def test_the_rules_know_it(ending: tuple[str, Path]) -> None:
    code, repository = ending
    found = check_catalog(read_repository(repository, target("embedded")))
    assert any(one.code == code and one.refused for one in found)
    assert not any(one.model == "good" for one in found)


@pytest.mark.server
@pytest.mark.slow
def test_a_real_server_does_not_come_up(ending: tuple[str, Path]) -> None:
    from fuzz.oracle import verdicts

    with pytest.raises(TimeoutError):
        verdicts(ending[1], timeout_s=12)
