"""The command `tritonkit load`: what it says, what it writes, and its exit status."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from load.__main__ import app


def called(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["load", *map(str, arguments)])


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["--rate", 5, "--concurrency", 2], 2, "only one of --rate, --replay and --concurrency"),
        (["--audio-seconds", "2,x"], 2, "positive numbers with commas"),
        (["--p95", "soon"], 2, "a number with us, ms or s is needed"),
        (["--errors", "many"], 2, "a share such as 1% or 0.01 is needed"),
        (["--image", "nowhere"], 1, "nowhere: nothing of the kind"),
        (["--replay", "nowhere.txt"], 1, "nowhere.txt"),
        (["--concurrency", 1], 1, "Connection refused; a running server is needed"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(arguments: list[object], status: int, words: str) -> None:
    found = called("detect", "grpc://127.0.0.1:1", *arguments)
    assert found.exit_code == status and words in " ".join(found.output.split()), found.output
    assert "Traceback" not in found.output


@pytest.mark.server
def test_a_load_within_its_limits_writes_what_it_found(served: Any, tmp_path: Path) -> None:
    trace, page, numbers = tmp_path / "trace.txt", tmp_path / "page.html", tmp_path / "found.json"
    trace.write_text("100.0\n100.2\n100.3\n")
    limits = ["--p95", "60s", "--errors", "0%"]
    found = called("detect", f"grpc://{served.grpc}", "--replay", trace, "--html", page, "--json", numbers, *limits)
    assert found.exit_code == 0, found.output
    assert "0.0 % not right (3 requests" in found.stdout and "yolo_postprocess" in found.stdout
    told = json.loads(numbers.read_text())
    assert told["outcomes"]["right"] == 3 and told["load"]["arrivals"] == "open loop, 3 arrivals replayed"
    assert page.read_text().startswith("<!doctype html>") and "coffee.jpg" in page.read_text()


@pytest.mark.server
def test_a_load_that_passes_a_limit_ends_with_1_and_says_which(served: Any) -> None:
    found = called("yolo", f"grpc://{served.grpc}", "--batch", 2, "--seconds", 0.2, "--warmup", 0, "--p95", "1us",
                   "--ceiling", "--json", "-")  # fmt: skip
    assert found.exit_code == 1 and "is the limit" in found.stderr, found.output
    told = json.loads(found.stdout)
    assert told["outcomes"]["right"] == told["requests"] > 0 and told["generator"]["ceiling_per_s"] > 0
    assert told["models"]["yolo"]["requests"] == 2 * told["requests"], "a request of a batch of 2 counts twice"
