"""The smallest configs with names and values that Triton's message cannot hold, and what is said about each."""

from __future__ import annotations


def _model(**config):
    return {
        "name": "m",
        "backend": "python",
        "input": [{"name": "A", "data_type": "TYPE_FP32", "dims": [1]}],
        "output": [{"name": "B", "data_type": "TYPE_FP32", "dims": [1]}],
        **config,
    }


def test_a_sound_config_has_no_findings(told_of_configs):
    assert told_of_configs(_model()) == []


def test_unknown_field_names_the_nearest(told_of_configs):
    (line,) = told_of_configs(_model(max_batchsize=8))
    assert line.startswith(
        "TK101 m, max_batchsize: ModelConfig has no field max_batchsize; did you mean max_batch_size?"
    )
    assert line.endswith("Write max_batch_size.")


def test_misplaced_field_names_where_it_belongs(told_of_configs):
    """DEP-06 a."""
    (line,) = told_of_configs(_model(max_queue_delay_microseconds=5))
    assert "Move it to dynamic_batching.max_queue_delay_microseconds or " in line


def test_unknown_field_inside_a_tensor_is_found_with_its_path(told_of_configs):
    tensor = {"name": "A", "datatype": "TYPE_FP32", "data_type": "TYPE_FP32", "dims": [1]}
    (line,) = told_of_configs(_model(input=[tensor]))
    assert line.startswith("TK101 m, input[0].datatype: ModelInput has no field datatype; did you mean data_type?")


def test_every_wrong_type_is_named_at_once(told_of_configs):
    lines = told_of_configs(_model(max_batch_size="8", instance_group=[{"count": True}], parameters=3))
    assert [line.split(": ")[0] for line in lines] == [
        "TK102 m, max_batch_size",
        "TK102 m, instance_group[0].count",
        "TK102 m, parameters",
    ]
    assert lines[0] == (
        "TK102 m, max_batch_size: '8' is not a whole number (int32), a whole number (int32) is needed. "
        "Write max_batch_size as such."
    )


def test_number_out_of_range_is_a_wrong_type(told_of_configs):
    (line,) = told_of_configs(_model(max_batch_size=2**31))
    assert line.startswith("TK102 m, max_batch_size: 2147483648 is not a whole number (int32)")


def test_unknown_word_names_the_nearest(told_of_configs):
    tensor = {"name": "A", "data_type": "TYPE_FLOAT32", "dims": [1]}
    lines = told_of_configs(_model(input=[tensor]))
    assert lines[0].startswith("TK103 m, input[0].data_type: 'TYPE_FLOAT32' is no DataType; did you mean TYPE_")


def test_two_schedulers_are_one_too_many(told_of_configs):
    (line,) = told_of_configs(_model(max_batch_size=4, dynamic_batching={}, sequence_batching={}))
    assert line == (
        "TK104 m, sequence_batching: dynamic_batching is given too, only one of dynamic_batching and sequence_batching "
        "can be given. Keep one of them."
    )


def test_field_newer_than_the_target_names_its_release(told_of_configs):
    (line,) = told_of_configs(_model(model_metrics={}))
    assert line.startswith("TK105 m, model_metrics: model_metrics came with 24.11 (Triton 2.52.0), what 24.10 knows")


def test_the_same_field_is_fine_for_a_newer_target(told_of_configs):
    assert told_of_configs(_model(model_metrics={}), release="24.11") == []
