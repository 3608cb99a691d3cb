"""A server's trace as a timeline, and the timeline as text, picture and page."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from tritonkit.timeline import PARTS, as_page, as_svg, as_text, parts_of
from tritonkit.trace import Timeline, read_trace, wait_for_trace
from tritonkit.tracing import middle

MS = 1_000_000
CONFIG = {
    "ensemble_scheduling": {
        "step": [
            {"model_name": "ears", "input_map": {"A": "audio"}, "output_map": {"B": "heard"}},
            {"model_name": "whisper_decoder", "input_map": {"A": "heard"}, "output_map": {"B": "words"}},
            {"model_name": "prompt", "input_map": {"A": "words"}, "output_map": {"B": "messages"}},
        ]
    }
}


def entries(number: int, model: str, parent: int, **stamps: float) -> list[dict[str, Any]]:
    """What the server writes about one request: who it is, then its times."""
    named = [{"id": number, "timestamps": [{"name": name, "ns": int(ms * MS)}]} for name, ms in stamps.items()]
    return [{"id": number, "model_name": model, "model_version": 1, "parent_id": parent}, *named]


@pytest.fixture
def timeline(tmp_path: Path) -> Timeline:
    """Steps of 1, 2, 3, 4 ms and so on: every part has a length of its own. The decoder answers after it returned."""
    ears = dict(zip(("QUEUE_START", "COMPUTE_START", "COMPUTE_INPUT_END"), (101.0, 102.0, 104.0), strict=True))
    written = [
        *entries(1, "whole", 0, REQUEST_START=100, REQUEST_END=150),
        *entries(2, "ears", 1, REQUEST_START=101, **ears, COMPUTE_OUTPUT_START=107, COMPUTE_END=111, REQUEST_END=112),
        *entries(
            3, "whisper_decoder", 1, REQUEST_START=114, QUEUE_START=114, COMPUTE_START=114, COMPUTE_INPUT_END=115,
            COMPUTE_OUTPUT_START=116, COMPUTE_END=116, REQUEST_END=149,
        ),
        *entries(9, "ears", 3, REQUEST_START=120, REQUEST_END=130),  # asked by the decoder itself: no step
        *entries(4, "prompt", 1, REQUEST_START=140, QUEUE_START=140, COMPUTE_START=141, COMPUTE_INPUT_END=142,
                 COMPUTE_OUTPUT_START=144, COMPUTE_END=145, REQUEST_END=145),
    ]  # fmt: skip
    path = tmp_path / "trace.0"
    path.write_text(json.dumps(written))
    return read_trace(path, CONFIG)


def ms(*seconds: float) -> list[float]:
    return [round(1000 * value, 3) for value in seconds]


def test_the_trace_of_a_pipeline_is_found_among_others(tmp_path: Path) -> None:
    for number, model in enumerate(["whole", "llm", "whole", "llm"]):
        (tmp_path / f"trace.{number}").write_text(json.dumps(entries(number, model, 0, REQUEST_START=1)))
    (tmp_path / "trace.10").write_text(json.dumps(entries(10, "whole", 0, REQUEST_START=1))[:-1])  # being written
    assert wait_for_trace(tmp_path, "whole", 1).name == "trace.2"
    with pytest.raises(TimeoutError, match="no trace of request 2 to whole"):
        wait_for_trace(tmp_path, "whole", 2, limit_s=0.05)


def test_a_step_is_gap_queue_input_compute_and_output(timeline: Timeline) -> None:
    assert (timeline.ensemble, ms(timeline.took_s, timeline.after_s)) == ("whole", [50, 5])
    ears, decoder, prompt = timeline.steps
    assert [step.model for step in timeline.steps] == ["ears", "whisper_decoder", "prompt"]
    assert ms(ears.start_s, ears.gap_s, ears.queue_s, ears.input_s, ears.compute_s, ears.output_s, ears.took_s) == [
        1, 1, 1, 2, 3, 4, 11,
    ]  # fmt: skip
    assert ms(prompt.gap_s, prompt.queue_s, prompt.compute_s) == [0, 1, 2]


def test_a_model_that_answers_later_lasts_until_its_answer_is_needed(timeline: Timeline) -> None:
    _, decoder, _ = timeline.steps
    assert decoder.answers_later
    assert ms(decoder.gap_s, decoder.took_s, decoder.rest_s) == [2, 26, 24]
    assert [(name, *ms(begin, end)) for name, begin, end in parts_of(decoder)] == [
        ("gap", 12, 14), ("input", 14, 15), ("compute", 15, 16), ("answers later", 16, 40),
    ]  # fmt: skip


def test_text_has_a_line_for_each_step_with_its_parts_in_place(timeline: Timeline) -> None:
    lines = as_text(timeline, width=50).splitlines()
    assert lines[0] == "whole: 50.0 ms in the server"
    bars = [line[16:66] for line in lines[2:5]]
    assert bars[0].rstrip() == "-qii###oooo"
    assert bars[1].rstrip() == " " * 12 + "--i#" + "~" * 24
    assert bars[2].strip() == "qi##o"
    assert lines[2].split()[-7:] == ["1.00", "1.00", "1.00", "2.00", "3.00", "4.00", "11.0"]
    assert lines[5].split() == ["to", "the", "answer", "5.00"]


def test_the_picture_is_drawn_to_scale(timeline: Timeline) -> None:
    root = ElementTree.fromstring(as_svg(timeline))
    space = "{http://www.w3.org/2000/svg}"
    bars = {bar.find(f"{space}title").text: bar for bar in root.iter(f"{space}rect") if bar.find(f"{space}title") is not None}  # fmt: skip  # noqa: E501
    assert len(bars) == sum(1 for step in timeline.steps for _ in parts_of(step))
    compute, later = bars["ears, compute: 3.00 ms"], bars["whisper_decoder, answers later: 24.0 ms"]
    assert float(later.get("width", 0)) == pytest.approx(8 * float(compute.get("width", 0)), abs=0.2)
    assert compute.get("fill") == PARTS["compute"][1]
    page = as_page(timeline)
    assert "<h1>whole: 50.0 ms in the server</h1>" in page
    assert page.count("<tr><td>") == 3


def test_the_middle_of_some_requests_is_one_of_them(timeline: Timeline) -> None:
    others = [Timeline(ensemble="whole", steps=(), took_s=took_s) for took_s in (0.001, 0.2)]
    assert middle([others[1], timeline, others[0]]) is timeline
