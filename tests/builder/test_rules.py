"""The rules as a whole."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from builder import CheckError, Pipeline, Step, check_pipelines, checked_plan
from builder.pipelines.assistant import assistant
from builder.pipelines.detect import detect
from builder.pipelines.transcribe import transcribe
from builder.rules import ALL_RULES

BROKEN = Path(__file__).parent / "broken"


def test_codes_are_unique_and_every_rule_says_why():
    codes = [rule.code for rule in ALL_RULES]
    assert len(set(codes)) == len(codes)
    assert all(re.fullmatch(r"TK\d{3}", rule.code) and rule.why and rule.title for rule in ALL_RULES)


@pytest.mark.parametrize("rule", ALL_RULES, ids=lambda rule: rule.code)
def test_every_rule_has_its_smallest_broken_case(rule):
    assert any(rule.code in file.read_text(encoding="utf-8") for file in BROKEN.glob("test_*.py"))


@pytest.mark.parametrize("release", ["embedded", "26.07-py3", "26.07-vllm+py3"])
def test_shipped_pipelines_have_no_findings_at_all(release):
    assert check_pipelines([assistant(), detect(), transcribe()], release)[1] == ()


def test_all_problems_come_at_once_in_order_of_steps(model):
    first = model("first", ["A FP32 [1]"], ["B FP32 [1]"], max_batch_sizee=1)
    second = model("second", ["A INT32 [1]"], ["B FP32 [0]"])
    steps = [
        Step(model=second, input_map="A=t", output_map="B"),
        Step(model=first, input_map="A", output_map="B=t"),
    ]
    with pytest.raises(CheckError) as caught:
        checked_plan([Pipeline(name="p", inputs="A C", outputs="B", steps=steps)])
    assert [(one.code, one.model, one.step) for one in caught.value.findings] == [
        ("TK401", "p", 0),
        ("TK310", "p", None),
        ("TK101", "first", None),
        ("TK203", "second", None),
    ]


def test_a_warning_does_not_stop_a_plan(model):
    one = model("m", ["A FP32 [1]"], ["B FP32 [1]"], max_batch_size=4)
    plan = checked_plan(
        [Pipeline(name="p", inputs="A", outputs="B", steps=[Step(model=one, input_map="A", output_map="B")])]
    )
    assert [ensemble.name for ensemble in plan.ensembles] == ["p"]
