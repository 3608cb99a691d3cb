"""The smallest ensembles whose edges do not agree, and what is said about each."""

from __future__ import annotations

import pytest

from builder import Pipeline, Step


def _chain(left, right, name="p", **config):
    (made,) = (one["name"] for one in left.config["output"])
    (read,) = (one["name"] for one in right.config["input"])
    steps = [
        Step(model=left, input_map="A", output_map={made: "t"}),
        Step(model=right, input_map={read: "t"}, output_map="C"),
    ]
    return Pipeline(name=name, inputs="A", outputs="C", steps=steps, **config)


def test_two_data_types(model, told):
    """WHI-05."""
    one = model("features", ["A FP32 [1]"], ["MEL FP32 [80,3000]"])
    two = model("encoder", ["mel FP16 [80,3000]"], ["C FP32 [1]"])
    assert told(_chain(one, two)) == [
        "TK401 p, step 1 (encoder), input mel: t is TYPE_FP32 from features, TYPE_FP16 is needed. "
        "Map another tensor or add a step that converts."
    ]


def test_two_sizes(model, told):
    """WHI-01."""
    one = model("features", ["A FP32 [1]"], ["MEL FP32 [80,3000]"])
    two = model("encoder", ["mel FP32 [128,3000]"], ["C FP32 [1]"])
    assert told(_chain(one, two)) == [
        "TK402 p, step 1 (encoder), input mel: t is [80,3000] from features, [128,3000] is needed. "
        "Map another tensor, correct the dims that are wrong, or add a step that converts."
    ]


def test_a_missing_first_one_is_answered_by_the_reshape_that_loads(model, told):
    """ENS-07, the broken form."""
    one = model("pre0", ["A FP32 [1]"], ["IMG FP32 [3,640,640]"])
    two = model("det1", ["images FP32 [1,3,640,640]"], ["C FP32 [1]"])
    (line,) = told(_chain(one, two))
    assert line.startswith("TK402 p, step 1 (det1), input images: t is [3,640,640] from pre0, [1,3,640,640] is needed.")
    assert "On det1 write dims: [3,640,640] reshape { shape: [1,3,640,640] }" in line


def test_a_reshape_on_the_maker_does_not_help(model, told):
    """ENS-07, the attempted form."""
    image = {"name": "IMG", "data_type": "TYPE_FP32", "dims": [3, 4, 4], "reshape": {"shape": [1, 3, 4, 4]}}
    one = model("pre0", ["A FP32 [1]"], [image])
    two = model("det1", ["images FP32 [1,3,4,4]"], ["C FP32 [1]"])
    (line,) = told(_chain(one, two))
    assert "Dims are compared, not what reshape makes of them" in line


def test_the_reshape_on_the_reader_is_fine(model, told):
    """ENS-07, the fixed form."""
    image = {"name": "images", "data_type": "TYPE_FP32", "dims": [3, 4, 4], "reshape": {"shape": [1, 3, 4, 4]}}
    assert (
        told(_chain(model("pre0", ["A FP32 [1]"], ["IMG FP32 [3,4,4]"]), model("det1", [image], ["C FP32 [1]"]))) == []
    )


def test_a_reshape_on_the_ensemble_is_what_is_compared(told_of_configs):
    """ENS-23."""
    text = {"name": "TXT", "data_type": "TYPE_STRING", "dims": [1]}
    tok = {"name": "tok", "backend": "python", "max_batch_size": 4, "dynamic_batching": {"preserve_ordering": True}}
    tok |= {"input": [text], "output": [{**text, "name": "B"}]}
    step = {"model_name": "tok", "model_version": -1, "input_map": {"TXT": "TXT"}, "output_map": {"B": "B"}}
    ensemble = {"name": "e", "platform": "ensemble", "max_batch_size": 4, "output": [{**text, "name": "B"}]}
    ensemble |= {"input": [{**text, "reshape": {}}], "ensemble_scheduling": {"step": [step]}}
    assert told_of_configs(tok, ensemble) == [
        "TK402 e, step 0 (tok), input TXT: TXT is [] with a batch in front [-1] from e, [1] with a batch in front "
        "[-1,1] is needed. Take the reshape off e; on the model of the step it is allowed."
    ]


@pytest.mark.parametrize(
    ("left", "left_batch", "right", "right_batch"),
    [
        ([-1, 80, 3000], 0, [80, 3000], 8),
        ([1500, 384], 8, [-1, 1500, 384], 0),
        ([3, 416, 416], 0, [3, 416, 416], 8),
        ([84, 2535], 8, [-1, -1], 0),
        ([-1], 0, [7], 0),
    ],
)
def test_ends_that_the_server_lets_pass(model, told, left, left_batch, right, right_batch):
    def batch(size):
        return {"max_batch_size": size, "dynamic_batching": {"preserve_ordering": True}} if size else {}

    first = {"name": "T", "data_type": "TYPE_FP32", "dims": left}
    second = {"name": "T", "data_type": "TYPE_FP32", "dims": right}
    one = model("one", ["A FP32 [1]"], [first], **batch(left_batch))
    two = model("two", [second], ["C FP32 [1]"], **batch(right_batch))
    # Sizes and rows that may differ at a request are another matter (TK405, TK406).
    assert [line for line in told(_chain(one, two)) if not line.startswith(("TK405", "TK406"))] == []


def test_step_with_smaller_batches_than_its_ensemble(model, told):
    batching = {"dynamic_batching": {"preserve_ordering": True}}
    one = model("one", ["A FP32 [1]"], ["T FP32 [1]"], max_batch_size=8, **batching)
    two = model("two", ["T FP32 [1]"], ["C FP32 [1]"], max_batch_size=4, **batching)
    assert told(_chain(one, two, max_batch_size=8)) == [
        "TK403 p, step 1 (two): p takes batches of 8, two of 4 at most, at most 4 is needed, or 0. "
        "Write max_batch_size: 4 on the ensemble, or raise it on two."
    ]


def test_ensemble_that_promises_a_batch_its_step_cannot_take(model, told):
    """ENS-08: the server loads it and fails at the first batch of two."""
    batching = {"dynamic_batching": {"preserve_ordering": True}}
    one = model("pre", ["A FP32 [1]"], ["IMG FP32 [3,4,4]"], max_batch_size=8, **batching)
    two = model("det1", ["images FP32 [1,3,4,4]"], ["C FP32 [1,6]"])
    lines = told(_chain(one, two, max_batch_size=8))
    assert lines[0].startswith(
        "TK404 p, step 1 (det1), input images: p takes batches of 8, and det1 takes 1 of t, "
        "batches of 1 at most are possible. Write max_batch_size: 1 on p, or give det1 a first size that varies"
    )


def test_a_batch_into_a_model_of_the_same_dims_takes_one_row(model, told):
    batching = {"dynamic_batching": {"preserve_ordering": True}}
    one = model("pre", ["A FP32 [1]"], ["B FP32 [3]"], max_batch_size=8, **batching)
    two = model("post", ["B FP32 [3]"], ["C FP32 [3]"])
    (line,) = told(_chain(one, two, max_batch_size=8))
    assert line.startswith("TK404 p, step 1 (post), input ") and "p takes batches of 8, and post takes 1 of t" in line
    (line,) = told(_chain(one, two, max_batch_size=0))
    assert line.startswith("TK406 p, step 1 (post), input ") and "t comes in as many rows as " in line


def test_a_size_that_varies_into_a_fixed_one(model, told):
    one = model("one", ["A FP32 [1]"], ["T FP32 [-1, 3]"])
    two = model("two", ["T FP32 [5, 3]"], ["C FP32 [1]"])
    (line,) = told(_chain(one, two))
    assert line.startswith("TK405 p, step 1 (two), input T: t is [-1,3], where -1 can be any size, two takes [5,3]")


def test_rows_beyond_the_batch(model, told):
    one = model("one", ["A FP32 [1]"], ["T FP32 [16, 3]"])
    two = model("two", ["T FP32 [3]"], ["C FP32 [1]"], max_batch_size=8, dynamic_batching={"preserve_ordering": True})
    (line,) = told(_chain(one, two))
    assert line.startswith("TK407 p, step 1 (two), input T: t comes in 16 rows, which become the batch of two, two")


def test_different_batches_in_one_step(model, told):
    """ENS-09: a tensor of many rows beside one of a single row."""
    batching = {"dynamic_batching": {"preserve_ordering": True}}
    crops = model("crops", ["A FP32 [1]"], ["B FP32 [-1, 3]"])
    join = model("join", ["B FP32 [3]", "T FP32 [1]"], ["C FP32 [1]"], max_batch_size=8, **batching)
    steps = [
        Step(model=crops, input_map="A", output_map="B"),
        Step(model=join, input_map="B T=A", output_map="C"),
    ]
    (line,) = told(Pipeline(name="p", inputs="A", outputs="C", steps=steps))
    assert line.startswith("TK408 p, step 1 (join), input T: its inputs come in as many rows as B has and 1 row, ")
