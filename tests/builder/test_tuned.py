"""Measured settings beside pipelines: read, put into models, written so that they read the same again."""

from __future__ import annotations

from pathlib import Path

import pytest

from builder import DeclarationError, Pipeline, Step, make_plan, python
from builder.loading import load_pipelines
from builder.render import render_plan
from builder.tuned import FILE, read_tuned, remarks_of, tuned_text

CODE = 'import triton_python_backend_utils as pb_utils\n\n\nclass TritonPythonModel:\n    """Nothing."""\n'
PIPELINE = """
from builder import Pipeline, Step, python

double = python("double", code="double", input=["X FP32 [4]"], output=["Y FP32 [4]"], max_batch_size=8,
                dynamic_batching={"max_queue_delay_microseconds": 5000, "preserve_ordering": True},
                profiles={"gpu": {"instance_group": [{"kind": "KIND_GPU", "count": 1}]}})
PIPELINE = Pipeline(name="doubled", inputs="X", outputs="Y", steps=[Step(model=double, input_map="X", output_map="Y")])
"""
TUNED = {
    "double": {
        "cpu": {
            "max_batch_size": 4,
            "dynamic_batching": {"max_queue_delay_microseconds": 2000, "preferred_batch_size": [2]},
            "instance_group": [{"kind": "KIND_CPU", "count": 2}],
            "parameters": {"intra_op_thread_count": {"string_value": "1"}},
        }
    }
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "double").mkdir()
    (tmp_path / "double" / "model.py").write_text(CODE)
    (tmp_path / "pipeline.py").write_text(PIPELINE)
    return tmp_path


def rendered(home: Path) -> dict[str, str]:
    return render_plan(make_plan(load_pipelines([str(home / "pipeline.py")], {})))


def test_a_build_takes_what_was_measured_and_nothing_else_changes(home: Path) -> None:
    before = rendered(home)
    (home / FILE).write_text(tuned_text(TUNED, {}))
    after = rendered(home)
    changed = {path for path in after if after[path] != before[path]}
    assert changed == {"double/config.pbtxt"}, "the gpu profile stays as its code says"
    config = after["double/config.pbtxt"]
    for words in ("max_batch_size: 4", "max_queue_delay_microseconds: 2000", "preferred_batch_size: [2]", "count: 2"):
        assert words in config
    assert "preserve_ordering: true" in config, "what was not tuned stays"
    assert "intra_op_thread_count" in config


def test_the_file_reads_back_as_it_was_written_remarks_included(tmp_path: Path) -> None:
    remarks = {"double": "2026-11-29, 2 cores: p95 90 ms before, 60 ms after"}
    (tmp_path / FILE).write_text(tuned_text(TUNED, remarks))
    assert read_tuned(tmp_path) == TUNED
    assert remarks_of(tmp_path) == remarks
    assert tuned_text(read_tuned(tmp_path), remarks_of(tmp_path)) == (tmp_path / FILE).read_text()


def test_other_models_stay_as_they_are(home: Path) -> None:
    (home / FILE).write_text(tuned_text({"another": TUNED["double"]}, {}))
    before = load_pipelines([str(home / "pipeline.py")], {})[0]
    assert before.models()[0].config_for("cpu")["max_batch_size"] == 8


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[double.cpu]\nmax_batch = 4\n", "max_batch is nothing that is tuned, did you mean max_batch_size"),
        ("[double.gpus]\nmax_batch_size = 4\n", "gpus is nothing that is tuned"),
        ("double = 4\n", "a table is needed"),
        ("[double", "TOML is needed"),
    ],
)
def test_a_mistake_in_the_file_is_named(home: Path, text: str, words: str) -> None:
    (home / FILE).write_text(text)
    with pytest.raises(DeclarationError) as caught:
        load_pipelines([str(home / "pipeline.py")], {})
    assert words in str(caught.value).replace("; did you mean", ", did you mean")
    assert FILE in str(caught.value)


def test_steps_that_share_a_model_share_the_tuned_one(tmp_path: Path) -> None:
    from builder.tuned import with_tuned

    (tmp_path / "model.py").write_text(CODE)
    double = python("double", code=tmp_path, input=["X FP32 [4]"], output=["Y FP32 [4]"], max_batch_size=8)
    steps = [
        Step(model=double, input_map="X", output_map="Y=middle"),
        Step(model=double, input_map="X=middle", output_map="Y"),
    ]
    made = with_tuned(Pipeline(name="twice", inputs="X", outputs="Y", steps=steps), TUNED)
    assert made.steps[0].model is made.steps[1].model
    assert len(made.models()) == 1
