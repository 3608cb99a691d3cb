"""The smallest ensembles that are wired wrongly, and what is said about each."""

from __future__ import annotations

from builder import Pipeline, Step


def _one(name):
    return {"name": name, "data_type": "TYPE_FP32", "dims": [1]}


def _config(name, **config):
    return {"name": name, "backend": "python", "input": [_one("A")], "output": [_one("B")], **config}


def _ensemble(*steps, name="e", **config):
    return {
        "name": name,
        "platform": "ensemble",
        "input": [_one("X")],
        "output": [_one("Y")],
        "ensemble_scheduling": {"step": list(steps)},
        **config,
    }


def _step(model="m", input_map=None, output_map=None, **more):
    maps = {"input_map": input_map or {"A": "X"}, "output_map": output_map or {"B": "Y"}}
    return {"model_name": model, "model_version": -1, **maps, **more}


def test_a_sound_ensemble_has_no_findings(told_of_configs):
    assert told_of_configs(_config("m"), _ensemble(_step())) == []


def test_no_steps(told_of_configs):
    lines = told_of_configs(_ensemble(input=[], output=[]))
    assert lines == [
        "TK301 e, ensemble_scheduling.step: there are no steps, at least one step is needed. "
        "Add a step with model_name, input_map and output_map."
    ]


def test_a_step_without_output_map(told_of_configs):
    step = {"model_name": "m", "model_version": -1, "input_map": {"A": "X"}}
    (line,) = told_of_configs(_config("m"), _ensemble(step, output=[]))
    assert line.startswith("TK301 e, step 0 (m): output_map is missing or empty")


def test_unknown_model_names_the_nearest(told_of_configs):
    """ENS-24 c."""
    (line,) = told_of_configs(_config("whisper"), _ensemble(_step("wisper")))
    assert line == (
        "TK302 e, step 0 (wisper): there is no model wisper in the repository; did you mean whisper?, "
        "one of whisper is needed. Write whisper."
    )


def test_unknown_input_of_a_model_names_the_nearest(model, told):
    """ENS-06 a."""
    det = model("det", ["images FP32 [3]"], ["output0 FP32 [4]"])
    lines = told(Pipeline(name="p", inputs="img", outputs="pred", steps=[_map(det, "image=img", "output0=pred")]))
    assert lines == [  # and not, besides, that images is not mapped
        "TK303 p, step 0 (det), input image: det has no input image; did you mean images?, "
        'one of images is needed. Map images: "img".'
    ]


def test_unknown_output_of_a_model_names_the_nearest(model, told):
    """ENS-06 b."""
    det = model("det", ["images FP32 [3]"], ["output0 FP32 [4]"])
    (line,) = told(Pipeline(name="p", inputs="images", outputs="pred", steps=[_map(det, "images", "output=pred")]))
    assert line == (
        "TK304 p, step 0 (det), output output: det has no output output; did you mean output0?, "
        'one of output0 is needed. Map output0: "pred".'
    )


def test_required_input_that_is_not_mapped(model, told):
    join = model("join", ["A FP32 [1]", "B FP32 [1]", "C? FP32 [1]"], ["D FP32 [1]"])
    assert told(Pipeline(name="p", inputs="A", outputs="D", steps=[_map(join, "A", "D")])) == [
        "TK305 p, step 0 (join), input B: B is not mapped, and join needs it, every input that is not optional is "
        "needed. Map B to an ensemble tensor, or declare it optional if join can do without it."
    ]


def test_tensor_that_nobody_makes_names_the_nearest_and_the_one_left_over(model, told):
    """ENS-03."""
    det = model("det", ["images FP32 [3]"], ["output0 FP32 [4]"])
    post = model("post", ["PRED FP32 [4]"], ["BOXES FP32 [6]"])
    steps = [_map(det, "images", "output0=pred"), _map(post, "PRED=preds", "BOXES")]
    assert told(Pipeline(name="p", inputs="images", outputs="BOXES", steps=steps)) == [
        "TK311 p, step 0 (det), output output0: nothing reads pred; did you mean preds?, every mapped output must be "
        "read by a step or returned. Take output0 out of output_map, or add pred to the outputs.",
        "TK306 p, step 1 (post), input PRED: no step makes preds, and it is no input of p; did you mean pred?, "
        "one of images, BOXES, pred is needed. Read pred.",
    ]


def test_output_that_nobody_makes(model, told):
    one = model("m", ["A FP32 [1]"], ["B FP32 [1]"])
    lines = told(Pipeline(name="p", inputs="A", outputs="B C", steps=[_map(one, "A", "B")]))
    assert lines == [
        "TK306 p, output C: no step makes C, one of A, B is needed. "
        "Map a step's output to it, or take it out of the outputs."
    ]


def test_two_steps_that_make_one_tensor(model, told):
    one, two = model("one", ["A FP32 [1]"], ["B FP32 [1]"]), model("two", ["A FP32 [1]"], ["B FP32 [1]"])
    steps = [_map(one, "A", "B"), _map(two, "A", "B")]
    assert told(Pipeline(name="p", inputs="A", outputs="B", steps=steps)) == [
        "TK307 p, step 1 (two), output B: B is already made by step 0 (one), every ensemble tensor can be made once. "
        "Map B to a tensor of another name."
    ]


def test_step_that_writes_over_an_input(model, told):
    """ENS-25: the server loads it, and every request hangs."""
    same = model("same", ["ids INT32 [-1]"], ["ids INT32 [-1]"])
    steps = [_map(same, "ids", "ids"), _map(same, "ids", "ids=ids2")]
    assert told(Pipeline(name="p", inputs="ids", outputs="ids2", steps=steps))[0] == (
        "TK308 p, step 0 (same), output ids: ids is an input of p already, a tensor that the caller sends cannot be "
        "made by a step. Map ids to a tensor of another name."
    )


def test_cycle_is_named_with_its_path(model, told):
    """ENS-24 a."""
    join = model("join", ["A FP32 [1]", "B FP32 [1]"], ["C FP32 [1]"])
    same = model("id", ["A FP32 [1]"], ["B FP32 [1]"])
    steps = [_map(join, "A B=loop", "C=mid"), _map(same, "A=mid", "B=loop"), _map(same, "A=mid", "B=C")]
    (line,) = told(Pipeline(name="p", inputs="A", outputs="C", steps=steps))
    assert line.startswith("TK309 p, ensemble_scheduling.step: steps wait for each other: ")
    assert "loop -> join -> mid -> id -> loop" in line or "mid -> id -> loop -> join -> mid" in line


def test_input_that_no_step_reads_names_who_could_take_it(model, told):
    """ENS-04."""
    one = model("m", ["RAW FP32 [1]", "LIMIT? FP32 [1]"], ["B FP32 [1]"])
    assert told(Pipeline(name="p", inputs="RAW THRESH", outputs="B", steps=[_map(one, "RAW", "B")])) == [
        "TK310 p, input THRESH: no step reads THRESH, every input must be read by a step. "
        "Map THRESH to a step's input (LIMIT of step 0 (m) could take it), or take it out."
    ]


def test_ensemble_that_contains_itself(told_of_configs):
    """ENS-24 b."""
    inner = _ensemble(_step("outer", {"X": "X"}, {"Y": "Y"}), name="inner")
    outer = _ensemble(_step("inner", {"X": "X"}, {"Y": "Y"}), name="outer")
    lines = told_of_configs(inner, outer)
    assert lines[0].startswith("TK312 inner, ensemble_scheduling.step: it contains itself: inner -> outer -> inner, ")


def test_step_without_a_version(told_of_configs):
    """ENS-11."""
    step = {"model_name": "m", "input_map": {"A": "X"}, "output_map": {"B": "Y"}}
    (line,) = told_of_configs(_config("m"), _ensemble(step), versions=(1, 3))
    assert line == (
        "TK313 e, step 0 (m): model_version is left out, -1 for the latest version, or one of 3, is needed. "
        "Write model_version: -1."
    )


def test_step_with_a_version_that_does_not_exist(told_of_configs):
    (line,) = told_of_configs(_config("m"), _ensemble(_step(model_version=7)), versions=(1,))
    assert line.startswith("TK313 e, step 0 (m): m has no version 7, -1 for the latest version, or one of 1, is needed")


def _map(model, input_map, output_map):
    return Step(model=model, input_map=input_map, output_map=output_map)
