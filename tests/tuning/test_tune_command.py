"""The command's own parts: times and shapes on the command line, the chart, the file beside the pipeline."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tuning.chart import Curve, latency_chart

ROOT = Path(__file__).parents[2]


def test_the_chart_holds_both_curves_and_what_was_asked_for() -> None:
    before = Curve(name="before", latencies_s=[0.1, 0.2, 0.3], predicted_s=(0.2, 0.3))
    after = Curve(name="after & better", latencies_s=[0.05, 0.1], predicted_s=(0.05, 0.1))
    svg = latency_chart([before, after], 0.2)
    root = ElementTree.fromstring(svg)
    lines = [one for one in root.iter() if one.tag.endswith("polyline")]
    assert len(lines) == 2
    words = [one.text for one in root.iter() if one.tag.endswith("text")]
    assert {"before", "after & better", "200 ms asked for"} <= set(words)
    last = [float(line.attrib["points"].split()[-1].split(",")[0]) for line in lines]
    assert last[0] > last[1], "the slower one ends further right"


def test_a_chart_without_answers_is_drawn() -> None:
    ElementTree.fromstring(latency_chart([Curve(name="none", latencies_s=[], predicted_s=(float("inf"),) * 2)], 0.2))


def test_only_one_command_of_the_builder_asks_for_the_simulation() -> None:
    users = {
        str(file.relative_to(ROOT))
        for file in (ROOT / "builder").rglob("*.py")
        if re.search(r"^\s*(from|import) tuning", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
    }
    assert users == {"builder/commands/users.py"}


PURE = ("settings", "batcher", "times", "network", "simulate", "outcome", "search", "arrivals", "fleet", "day", "sums")


@pytest.mark.parametrize("module", PURE)
def test_the_model_touches_no_server(module: str) -> None:
    tree = ast.parse((ROOT / "tuning" / f"{module}.py").read_text(encoding="utf-8"))
    names = {
        name.split(".")[0]
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert not names & {"clients", "embedded", "load", "builder", "http", "subprocess", "socket", "time"}
