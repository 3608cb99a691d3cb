"""The smallest models with a wrong sequence batcher or batch tensor, and what is said about each.

Each was tried on a real 2.51, which refuses them all unless the test says otherwise.
"""

from __future__ import annotations

import pytest

PAIR = {"int32_false_true": [0, 1]}


def _model(**config):
    return {
        "name": "m",
        "backend": "python",
        "max_batch_size": 4,
        "input": [{"name": "A", "data_type": "TYPE_FP32", "dims": [3]}],
        "output": [{"name": "B", "data_type": "TYPE_FP32", "dims": [3]}],
        **config,
    }


def _sequence(*controls, **more):
    return _model(sequence_batching={"control_input": list(controls), **more})


def _control(kind, name="C", **values):
    return {"name": name, "control": [{"kind": f"CONTROL_SEQUENCE_{kind}", **values}]}


def test_a_good_sequence_batcher(told_of_configs):
    controls = [_control("START", **PAIR), _control("CORRID", "D", data_type="TYPE_UINT64")]
    assert told_of_configs(_sequence(*controls, oldest={"max_candidate_sequences": 4})) == []


@pytest.mark.parametrize("name", ["", "C"])
def test_control_tensors_without_a_name_of_their_own(name, told_of_configs):
    lines = told_of_configs(_sequence(_control("START", **PAIR), _control("END", name, **PAIR)))
    assert [line.split(",")[0] for line in lines] == ["TK621 m"]


def test_a_control_given_twice(told_of_configs):
    (line,) = told_of_configs(_sequence(_control("START", **PAIR), _control("START", "D", **PAIR)))
    assert line.startswith(
        "TK622 m, sequence_batching.control_input[1].control[0].kind: CONTROL_SEQUENCE_START is given "
    )


@pytest.mark.parametrize(
    ("control", "found"),
    [
        (_control("READY"), "CONTROL_SEQUENCE_READY has no values"),
        (_control("READY", int32_false_true=[0]), "CONTROL_SEQUENCE_READY has int32_false_true: [0]"),
        (
            _control("READY", **PAIR, bool_false_true=[False, True]),
            "CONTROL_SEQUENCE_READY has int32_false_true: [0, 1] and",
        ),
        (_control("CORRID", data_type="TYPE_FP32"), "the correlation ID is TYPE_FP32"),
        (_control("CORRID", data_type="TYPE_INT64", **PAIR), "int32_false_true for CONTROL_SEQUENCE_CORRID"),
    ],
)
def test_a_control_without_its_values(control, found, told_of_configs):
    (line,) = told_of_configs(_sequence(control))
    assert line.startswith("TK623 m, ") and found in line


@pytest.mark.parametrize("share", [-0.5, 2.0])
def test_slots_used_more_than_all(share, told_of_configs):
    (line,) = told_of_configs(_sequence(direct={"minimum_slot_utilization": share}))
    assert line.startswith(
        f"TK624 m, sequence_batching.direct.minimum_slot_utilization: minimum_slot_utilization is {share}"
    )


GOOD = {"name": "zero", "data_type": "TYPE_FP32", "dims": [2], "zero_data": True}


@pytest.mark.parametrize(
    ("initial", "found"),
    [
        ([GOOD, GOOD], "there are 2 initial states"),
        ([{**GOOD, "name": ""}], "the initial state has no name"),
        ([{**GOOD, "data_type": "TYPE_INT32"}], "the initial state is TYPE_INT32, TYPE_FP32 is needed"),
        ([{**GOOD, "dims": [3]}], "the initial state has dims [3], [2] is needed"),
        ([{**GOOD, "dims": [2, 1]}], "the initial state has dims [2,1], [2] is needed"),
        ([{"name": "zero", "data_type": "TYPE_FP32", "dims": [2]}], "the initial state has no data"),
    ],
)
def test_an_initial_state_that_does_not_fit(initial, found, told_of_configs):
    state = {"input_name": "S", "output_name": "T", "data_type": "TYPE_FP32", "dims": [2]}
    (line,) = told_of_configs(_sequence(state=[{**state, "initial_state": initial}]))
    assert line.startswith(f"TK625 m, state S: {found}")
    assert told_of_configs(_sequence(state=[{**state, "initial_state": [GOOD]}])) == []


def test_a_state_without_names(told_of_configs):
    """The server loads it."""
    (line,) = told_of_configs(_sequence(state=[{"data_type": "TYPE_FP32", "dims": [1]}]))
    assert line.startswith("TK626 m, sequence_batching.state[0]: a state without input_name, output_name, ")


def _batch_input(**more):
    one = {"kind": "BATCH_ELEMENT_COUNT", "target_name": ["N"], "data_type": "TYPE_FP32", "source_input": ["A"]}
    return _model(batch_input=[{**one, **more}], dynamic_batching={"preserve_ordering": True})


@pytest.mark.parametrize("sources", [[], ["A", "A"], ["a"]])
def test_a_batch_tensor_from_something_else_than_one_input(sources, told_of_configs):
    (line,) = told_of_configs(_batch_input(source_input=sources))
    assert line.startswith("TK631 m, batch_input[0].source_input: source_input is ")


def test_a_batch_tensor_of_another_type(told_of_configs):
    (line,) = told_of_configs(_batch_input(data_type="TYPE_INT64"))
    assert line.startswith("TK632 m, batch_input[0].data_type: data_type is TYPE_INT64")


@pytest.mark.parametrize("names", [["b"], ["B", "B"], []])
def test_a_batch_output_for_no_output(names, told_of_configs):
    scatter = {"target_name": names, "source_input": ["A"]}
    (line,) = told_of_configs(_model(batch_output=[scatter], dynamic_batching={"preserve_ordering": True}))
    assert line.startswith("TK633 m, batch_output[0].target_name: target_name is ")


@pytest.mark.parametrize(("backend", "code"), [("onnxruntime", "TK634"), ("python", "TK635")])
def test_a_ragged_batch(backend, code, told_of_configs):
    """BAT-09."""
    ragged = {"name": "A", "data_type": "TYPE_FP32", "dims": [-1], "allow_ragged_batch": True}
    (line,) = told_of_configs(_model(backend=backend, input=[ragged], dynamic_batching={"preserve_ordering": True}))
    assert line.startswith(f"{code} m, input A: allow_ragged_batch ")


def test_priorities_without_levels(told_of_configs):
    """The server loads it and passes over them."""
    (line,) = told_of_configs(_model(dynamic_batching={"default_priority_level": 1}))
    assert line.startswith(
        "TK611 m, dynamic_batching.default_priority_level: default_priority_level without priority_levels"
    )


@pytest.mark.parametrize(
    ("size", "strategy", "field"),
    [
        (2**31 - 1, {}, "max_batch_size"),
        (4, {"oldest": {"max_candidate_sequences": 2**31 - 1}}, "sequence_batching.oldest.max_candidate_sequences"),
    ],
)
def test_more_sequences_than_memory_holds(size, strategy, field, told_of_configs):
    """A real 2.51 ends with `std::bad_alloc`; found by the fuzzer (seed 34)."""
    lines = told_of_configs(_model(max_batch_size=size, sequence_batching=strategy))
    assert lines[0].startswith(f"TK627 m, {field}: ")
