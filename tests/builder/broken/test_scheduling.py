"""The smallest models with wrong schedulers, queues or caches, and what is said about each."""

from __future__ import annotations

import pytest


def _model(**config):
    return {
        "name": "m",
        "backend": "python",
        "input": [{"name": "A", "data_type": "TYPE_FP32", "dims": [1]}],
        "output": [{"name": "B", "data_type": "TYPE_FP32", "dims": [1]}],
        **config,
    }


def _ensemble(**config):
    step = {"model_name": "m", "model_version": -1, "input_map": {"A": "A"}, "output_map": {"B": "B"}}
    tensors = {key: _model()[key] for key in ("input", "output")}
    return {"name": "e", "platform": "ensemble", "ensemble_scheduling": {"step": [step]}, **tensors, **config}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("instance_group", [{"count": 2, "kind": "KIND_CPU"}]),
        ("optimization", {"input_pinned_memory": {"enable": True}}),
        ("model_warmup", [{"name": "w"}]),
    ],
)
def test_fields_that_an_ensemble_may_not_have(field, value, told_of_configs):
    """ENS-16."""
    assert told_of_configs(_model(), _ensemble(**{field: value})) == [
        f"TK601 e, {field}: {field} is given on an ensemble, it belongs to the models of the steps. "
        f"Move {field} to the models it is meant for."
    ]


@pytest.mark.parametrize("batching", [{}, {"max_queue_delay_microseconds": 300}, {"preferred_batch_size": []}])
def test_batching_without_batches(batching, told_of_configs):
    """BAT-02."""
    (line,) = told_of_configs(_model(dynamic_batching=batching))
    assert line.startswith("TK602 m, dynamic_batching")
    assert "with max_batch_size 0" in line


def test_a_queue_policy_without_batches_is_fine(told_of_configs):
    assert told_of_configs(_model(dynamic_batching={"default_queue_policy": {"max_queue_size": 4}})) == []


def test_preferred_size_above_the_largest_batch(told_of_configs):
    (line,) = told_of_configs(_model(max_batch_size=4, dynamic_batching={"preferred_batch_size": [2, 8]}))
    assert line == (
        "TK603 m, dynamic_batching.preferred_batch_size[1]: preferred_batch_size 8 with max_batch_size 4, "
        "a size from 1 to 4 is needed. Correct the size, or raise max_batch_size."
    )


def test_preferred_size_of_zero_in_a_sequence_batcher(told_of_configs):
    (line,) = told_of_configs(_model(max_batch_size=4, sequence_batching={"oldest": {"preferred_batch_size": [0]}}))
    assert line.startswith("TK603 m, sequence_batching.oldest.preferred_batch_size[0]: preferred_batch_size 0")


def test_levels_without_a_default(told_of_configs):
    (line,) = told_of_configs(_model(max_batch_size=4, dynamic_batching={"priority_levels": 3}))
    assert line.startswith(
        "TK604 m, dynamic_batching.default_priority_level: default_priority_level 0 with 3 priority_levels, "
        "a level from 1 (first) to 3 is needed."
    )


def test_policy_for_a_level_that_does_not_exist(told_of_configs):
    batching = {"priority_levels": 2, "default_priority_level": 1, "priority_queue_policy": {3: {}}}
    (line,) = told_of_configs(_model(max_batch_size=4, dynamic_batching=batching))
    assert line.startswith("TK605 m, dynamic_batching.priority_queue_policy[3]: a policy for level 3 with 2")


def test_order_kept_with_levels_and_delay(told_of_configs):
    batching = {
        "preserve_ordering": True,
        "priority_levels": 2,
        "default_priority_level": 1,
        "default_queue_policy": {"timeout_action": "DELAY", "default_timeout_microseconds": 9},
    }
    lines = told_of_configs(_model(max_batch_size=4, dynamic_batching=batching))
    assert lines == [
        "TK606 m, dynamic_batching.preserve_ordering: preserve_ordering with 2 priority_levels, "
        "one level at most is possible when order is kept. Take preserve_ordering or the levels out.",
        "TK606 m, dynamic_batching.default_queue_policy.timeout_action: timeout_action DELAY with preserve_ordering, "
        "REJECT is needed when order is kept. Write timeout_action: REJECT, or take preserve_ordering out.",
    ]


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"model_transaction_policy": {"decoupled": True}}, "a decoupled model"),
        ({"max_batch_size": 2, "sequence_batching": {}}, "sequence_batching"),
    ],
)
def test_cache_where_it_cannot_work(config, reason, told_of_configs):
    """ENS-26."""
    (line,) = told_of_configs(_model(response_cache={"enable": True}, **config))
    assert line.startswith(f"TK607 m, response_cache: response_cache with {reason}, ")


def test_cache_of_an_ensemble_that_is_decoupled_by_a_step(told_of_configs):
    step = _model(model_transaction_policy={"decoupled": True})
    advice, line = told_of_configs(step, _ensemble(response_cache={"enable": True}))
    assert advice.startswith("TK504 e, step 0 (m): e is decoupled because of step 0 (m)")
    assert line.startswith("TK607 e, response_cache: response_cache with a decoupled model")


def test_override_without_a_default(told_of_configs):
    policy = {"allow_timeout_override": True}
    (line,) = told_of_configs(_model(max_batch_size=4, dynamic_batching={"default_queue_policy": policy}))
    assert line.startswith("TK608 m, dynamic_batching.default_queue_policy.allow_timeout_override: ")


def test_batches_without_a_batcher(told_of_configs):
    (line,) = told_of_configs(_model(max_batch_size=8))
    assert line == (
        "TK609 m, max_batch_size: max_batch_size is 8 and there is no dynamic_batching, "
        "requests of several callers run together only with a batcher. "
        "Add dynamic_batching { max_queue_delay_microseconds: 5000 }."
    )


def test_bounded_queue_on_a_step_of_an_old_server(told_of_configs):
    bounded = _model(dynamic_batching={"default_queue_policy": {"max_queue_size": 4}})
    (line,) = told_of_configs(bounded, _ensemble())
    assert line.startswith(
        "TK610 m, dynamic_batching.default_queue_policy.max_queue_size: max_queue_size 4, and e uses"
    )
    assert told_of_configs(bounded, _ensemble(), release="26.03") == []
