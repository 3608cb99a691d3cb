"""The smallest models with wrong instances, warm-up or versions, and what is said about each."""

from __future__ import annotations

import pytest


def _model(**config):
    return {
        "name": "m",
        "backend": "python",
        "input": [{"name": "A", "data_type": "TYPE_FP32", "dims": [3]}],
        "output": [{"name": "B", "data_type": "TYPE_FP32", "dims": [1]}],
        **config,
    }


def test_gpu_in_the_cpu_profile(told_of_configs):
    """INS-01."""
    config = _model(instance_group=[{"kind": "KIND_GPU"}])
    assert told_of_configs(config) == [
        "TK701 m, instance_group[0].kind: KIND_GPU in the cpu profile, KIND_CPU is needed there. "
        "Write KIND_CPU, and KIND_GPU for the gpu profile."
    ]
    assert told_of_configs(config, profile="gpu") == []


@pytest.mark.parametrize("kind", ["KIND_CPU", "KIND_MODEL"])
def test_gpu_numbers_on_another_kind(kind, told_of_configs):
    (line,) = told_of_configs(_model(instance_group=[{"kind": kind, "gpus": [0]}]))
    assert line.startswith(f"TK702 m, instance_group[0].gpus: gpus [0] with {kind}, gpus go with KIND_GPU only.")


def test_profile_of_a_python_model(told_of_configs):
    (line,) = told_of_configs(_model(instance_group=[{"kind": "KIND_CPU", "profile": ["0"]}]))
    assert line.startswith("TK703 m, instance_group[0].profile: ")


def test_tensorrt_on_the_cpu(told_of_configs):
    config = _model(backend="tensorrt", instance_group=[{"kind": "KIND_CPU"}])
    (line,) = told_of_configs(config, release="24.10-py3")
    assert line.startswith("TK704 m, instance_group[0].kind: KIND_CPU on a TensorRT model")


def test_several_engines_on_one_device(told_of_configs):
    """INS-04."""
    (line,) = told_of_configs(_model(instance_group=[{"kind": "KIND_MODEL", "count": 4}]))
    assert line.startswith("TK705 m, instance_group[0].count: 4 instances of KIND_MODEL, one is needed")


def test_several_instances_with_lifelines(told_of_configs):
    lifeline = {"name": "LIFELINE", "data_type": "TYPE_STRING", "dims": [1], "optional": True}
    config = _model(instance_group=[{"kind": "KIND_CPU", "count": 2}])
    config["input"].append(lifeline)
    (line,) = told_of_configs(config)
    assert line.startswith("TK708 m, instance_group[0]: 2 instances of a model with LIFELINE, one is needed")
    assert told_of_configs({**config, "instance_group": [{"kind": "KIND_CPU", "count": 1}]}) == []


def test_negative_count(told_of_configs):
    (line,) = told_of_configs(_model(instance_group=[{"kind": "KIND_CPU", "count": -1}]))
    assert line.startswith("TK706 m, instance_group[0].count: count is -1")


def _warm(**sample):
    one = {"data_type": "TYPE_FP32", "dims": [3], "zero_data": True}
    return _model(
        max_batch_size=4,
        dynamic_batching={"preserve_ordering": True},
        model_warmup=[{"name": "w", "batch_size": 1, "inputs": {"A": one}, **sample}],
    )


def test_a_sound_warmup_has_no_findings(told_of_configs):
    assert told_of_configs(_warm()) == []


def test_warmup_of_an_unknown_input_and_without_a_known_one(told_of_configs):
    """DEP-09 c."""
    sample = {"AA": {"data_type": "TYPE_FP32", "dims": [3], "zero_data": True}}
    assert told_of_configs(_warm(inputs=sample)) == [
        "TK711 m, input AA: there is no input AA; did you mean A?, one of A is needed. Name an input of the model.",
        "TK712 m, input A: the sample w has no A, every input that is not optional is needed. "
        "Add A with its data_type, dims and zero_data: true.",
    ]


@pytest.mark.parametrize("dims", [[4, 3], [-1], [2]])
def test_warmup_with_other_dims(dims, told_of_configs):
    """DEP-09 a, d."""
    sample = {"A": {"data_type": "TYPE_FP32", "dims": dims, "zero_data": True}}
    (line,) = told_of_configs(_warm(inputs=sample))
    assert line.startswith("TK713 m, input A: the sample has dims ")


def test_warmup_of_another_type(told_of_configs):
    sample = {"A": {"data_type": "TYPE_FP16", "dims": [3], "zero_data": True}}
    (line,) = told_of_configs(_warm(inputs=sample))
    assert line.startswith("TK713 m, input A: the sample is TYPE_FP16, TYPE_FP32 is needed")


def test_warmup_with_too_large_a_batch(told_of_configs):
    """DEP-09 b."""
    (line,) = told_of_configs(_warm(batch_size=8))
    assert line.startswith("TK714 m, model_warmup[0].batch_size: batch_size 8 with max_batch_size 4")


def test_no_version_folder(told_of_configs):
    """ENS-12."""
    (line,) = told_of_configs(_model(), versions=())
    assert line.startswith("TK801 m, version_policy: there is no version folder")


def test_policy_for_a_version_that_is_not_there(told_of_configs):
    """ENS-12."""
    (line,) = told_of_configs(_model(version_policy={"specific": {"versions": [3]}}), versions=(1,))
    assert line == (
        "TK801 m, version_policy.specific: the policy asks for 3, there is 1, at least one version that exists is "
        "needed. Write versions: [1]."
    )


def test_policy_for_some_versions_that_are_not_there(told_of_configs):
    (line,) = told_of_configs(_model(version_policy={"specific": {"versions": [1, 3]}}), versions=(1, 2))
    assert line.startswith("TK802 m, version_policy.specific: there is no version 3")


def test_resources_that_limit_nothing_by_themselves(told_of_configs):
    """INS-05."""
    group = {"kind": "KIND_CPU", "rate_limiter": {"resources": [{"name": "R", "count": 4}]}}
    (line,) = told_of_configs(_model(instance_group=[group]))
    assert line.startswith("TK707 m, instance_group[0].rate_limiter: resources R (count 4)")
    assert "--rate-limit=execution_count --rate-limit-resource=R:4" in line


def test_a_response_cache_needs_a_flag(told_of_configs):
    """ENS-26."""
    (line,) = told_of_configs(_model(response_cache={"enable": True}))
    assert line.startswith("TK612 m, response_cache: response_cache is enabled, a server with a cache is needed")
