"""The smallest launch lines that do not fit their repository or server, and what is said about each."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from builder.__main__ import app
from builder.launch import parse_launch

MODEL = """backend: "python"
input [ { name: "A" data_type: TYPE_FP32 dims: [ 3 ] } ]
output [ { name: "B" data_type: TYPE_FP32 dims: [ 3 ] } ]
instance_group [ { kind: KIND_CPU rate_limiter { resources [ { name: "R" count: 4 } ] } } ]
response_cache { enable: true }
"""
CODE = "class TritonPythonModel:\n    def execute(self, requests):\n        return [one for one in requests]\n"
GOOD = "--rate-limit=execution_count --cache-config=local,size=1048576 "


@pytest.fixture
def told_of_launch(tmp_path):
    """What is said of a launch line, a line for each finding."""
    (tmp_path / "pipe" / "1").mkdir(parents=True)
    (tmp_path / "pipe" / "config.pbtxt").write_text(MODEL)
    (tmp_path / "pipe" / "1" / "model.py").write_text(CODE)

    def ask(line: str, release: str = "embedded") -> list[str]:
        arguments = ["check", str(tmp_path), "--json", "--target", release, "--launch", f"tritonserver {GOOD}{line}"]
        import json

        findings = json.loads(CliRunner().invoke(app, arguments).stdout)["findings"]
        return [f"{one['code']} {one['model']}: {one['found']}; {one['expected']}. {one['fix']}" for one in findings]

    return ask


def test_a_line_that_fits(told_of_launch):
    assert told_of_launch("--model-control-mode=explicit --load-model=pipe --log-verbose 1") == []


def test_a_flag_that_is_newer_than_the_server(told_of_launch):
    (line,) = told_of_launch("--allow-client-shm=true")
    assert line.startswith("TK141 launch line: --allow-client-shm came with 26.04 (Triton 2.68.0); what the embedded ")
    assert told_of_launch("--allow-client-shm=true", "26.07-py3") == []


def test_shared_memory_as_a_setting_of_the_backend(told_of_launch):
    """PYB-03."""
    (line,) = told_of_launch("--backend-config=python,shm-size=1g")
    assert line.startswith("TK142 launch line: --backend-config=python,shm-size") and "--shm-size=2g" in line


@pytest.mark.parametrize(
    ("flag", "fix"),
    [
        ("--backend-config=python,shm-default-byte-size=1g", "Write 1073741824"),
        ("--cuda-memory-pool-byte-size=0:64MB", "Write 67108864"),
    ],
)
def test_sizes_with_a_unit(flag, fix, told_of_launch):
    """PYB-03."""
    (line,) = told_of_launch(flag)
    assert line.startswith("TK143 launch line: ") and line.endswith(fix)


def test_fewer_resources_than_an_instance_needs(told_of_launch):
    """INS-05."""
    (line,) = told_of_launch("--rate-limit-resource=R:2")
    assert line.startswith("TK144 launch line: --rate-limit-resource=R:2, and pipe needs 4; at least 4 ")
    assert told_of_launch("--rate-limit-resource=R:4") == []


def test_a_path_in_place_of_a_name(told_of_launch):
    """DEP-07."""
    (line,) = told_of_launch("--model-control-mode=explicit --load-model=/models/pipe")
    assert line.startswith("TK145 launch line: --load-model=/models/pipe; did you mean pipe?; ")
    assert line.endswith("Write --load-model=pipe")
    (line,) = told_of_launch("--load-model=pipe")
    assert line.startswith("TK145 launch line: --load-model without --model-control-mode=explicit")


def test_flags_in_every_form():
    launch = parse_launch(
        "docker run --gpus all image tritonserver --a=1 --b 2 --a='x y' --disable-auto-complete-config c"
    )
    assert launch.flags == {
        "gpus": ("all",), "a": ("1", "x y"), "b": ("2",), "disable-auto-complete-config": ("",)
    }  # fmt: skip
