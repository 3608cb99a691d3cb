"""Models that take turns on a GPU."""

from __future__ import annotations

import pytest

from builder import DeclarationError, check_pipelines
from builder.exclusive import one_at_a_time, taking_turns
from builder.pipelines.assistant import assistant
from builder.pipelines.detect import detect
from builder.pipelines.transcribe import transcribe
from builder.render import render_plan


def test_models_wait_for_one_token_on_their_gpu_and_not_on_the_cpu():
    pipeline = one_at_a_time(assistant(), ["whisper_encoder", "yolo"])
    plan, findings = check_pipelines([pipeline], "26.07-vllm+py3")
    assert [one for one in findings if one.severity == "error"] == []
    texts = render_plan(plan)
    limited = [path for path, text in texts.items() if "rate_limiter" in text]
    assert sorted(limited) == ["whisper_encoder/configs/gpu.pbtxt", "yolo/configs/gpu.pbtxt"]
    assert 'name: "gpu"' in texts["yolo/configs/gpu.pbtxt"]


def test_a_streaming_model_cannot_hold_a_token():
    with pytest.raises(DeclarationError, match="llm: it is decoupled: its requests go on after it has returned"):
        one_at_a_time(assistant(), ["llm"])


def test_a_name_that_is_no_model_is_told_with_the_nearest():
    with pytest.raises(DeclarationError, match="no model of it is called yollo; did you mean yolo?"):
        one_at_a_time(assistant(), ["yollo"])


def test_models_of_several_pipelines_take_turns_wherever_they_are():
    plan, findings = check_pipelines(
        taking_turns([assistant(), detect(), transcribe()], ["whisper_encoder", "yolo"]), "26.07-vllm+py3"
    )
    assert [one for one in findings if one.severity == "error"] == []
    limited = [path for path, text in render_plan(plan).items() if "rate_limiter" in text]
    assert sorted(limited) == ["whisper_encoder/configs/gpu.pbtxt", "yolo/configs/gpu.pbtxt"]
    with pytest.raises(DeclarationError, match="no model of it is called yollo"):
        taking_turns([detect(), transcribe()], ["yollo", "yolo"])
