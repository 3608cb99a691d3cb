"""The smallest pipelines that cannot become a repository, and what is said about each."""

from __future__ import annotations

from builder import Pipeline, Step


def _pipe(model, name="p", inputs="A", input_map="A", output_map="B", outputs="B"):
    return Pipeline(
        name=name,
        inputs=inputs,
        outputs=outputs,
        steps=[Step(model=model, input_map=input_map, output_map=output_map)],
    )


def test_two_models_of_one_name(model, told):
    one, two = (model("m", ["A FP32 [1]"], ["B FP32 [1]"], max_batch_size=size) for size in (0, None))
    assert told(_pipe(one), _pipe(two, "q")) == [
        "TK901 q: m is declared in another way in p, one declaration for each name is needed. "
        "Make the model once and use it in both, or give one of them another name."
    ]


def test_one_model_in_two_pipelines_is_fine(model, told):
    one, two = (model("m", ["A FP32 [1]"], ["B FP32 [1]"]) for _ in range(2))
    assert told(_pipe(one), _pipe(two, "q")) == []


def test_optional_input_without_which_nothing_is_left(model, told):
    (line,) = told(_pipe(model("m", ["A FP32 [1]"], ["B FP32 [1]"]), inputs="A?"))
    assert line.startswith(
        "TK902 p, input A: without A no output is left, or an input that is always sent has no use, "
        "an optional input must leave a useful rest. Take the ? off A,"
    )


def test_too_many_optional_inputs(model, told):
    names = [f"A{number}" for number in range(7)]
    steps = [
        Step(model=model(f"m{name}", [f"{name} FP32 [1]"], ["B FP32 [1]"]), input_map=name, output_map=f"B=B{name}")
        for name in names
    ]
    pipeline = Pipeline(
        name="p", inputs=[f"{name}?" for name in names], outputs=[f"B{name}" for name in names], steps=steps
    )
    (line,) = told(pipeline, release="26.07")
    assert line.startswith("TK903 p: 7 optional inputs are needed by a step: A0, A1, A2, A3, A4, A5, A6, at most 6")


def test_a_pipeline_named_as_a_model(model, told):
    lines = told(_pipe(model("p", ["A FP32 [1]"], ["B FP32 [1]"])))
    assert lines[0] == (
        "TK904 p: there is another model of this name, a name of its own is needed: the ensemble is called by it. "
        "Rename the pipeline."
    )


def test_an_input_named_twice(model, told):
    lines = told(_pipe(model("m", ["A FP32 [1]"], ["B FP32 [1]"]), inputs="A A"))
    assert lines[0] == "TK904 p, input A: A is declared 2 times, each name can be declared once. Keep one of them."
