"""The smallest configs with a wrong name or backend, and what is said about each."""

from __future__ import annotations

import pytest


def _tensors():
    return {
        "input": [{"name": "A", "data_type": "TYPE_FP32", "dims": [1]}],
        "output": [{"name": "B", "data_type": "TYPE_FP32", "dims": [1]}],
    }


@pytest.mark.parametrize("name", ["", "..", "a/b", ".hidden"])
def test_a_name_that_cannot_be_a_folder(name, told_of_configs):
    (line,) = told_of_configs({"name": name, "backend": "python", **_tensors()})
    assert line.startswith(f"TK111 {name}, name: {name!r} cannot be a folder in the repository")


def test_a_config_named_differently_from_its_folder():
    from builder import Catalog, check_catalog, entry, target

    one = entry("folder", {"name": "other", "backend": "python", **_tensors()})
    (found,) = check_catalog(Catalog(entries={"folder": one}, target=target("embedded")))
    assert f"{found.code} {found}" == (
        "TK112 folder, name: the config says 'other', the folder is 'folder', one name for both is needed. "
        'Write name: "folder", or leave it out.'
    )


def _ensemble(**config):
    step = {"model_name": "m", "model_version": -1, "input_map": {"A": "A"}, "output_map": {"B": "B"}}
    return {"name": "e", "platform": "ensemble", "ensemble_scheduling": {"step": [step]}, **_tensors(), **config}


def test_an_ensemble_with_a_backend(told_of_configs):
    """ENS-21 a."""
    (line,) = told_of_configs({"name": "m", "backend": "python", **_tensors()}, _ensemble(backend="python"))
    assert line.startswith("TK113 e, platform: it has steps with platform 'ensemble' and backend 'python'")


def test_an_ensemble_that_names_a_backend_for_a_platform(told_of_configs):
    """ENS-21 b."""
    (line,) = told_of_configs(
        {"name": "m", "backend": "python", **_tensors()}, _ensemble(platform="", backend="ensemble")
    )
    assert line.startswith("TK113 e, platform: it has steps with platform '' and backend 'ensemble'")


def test_no_backend(told_of_configs):
    (line,) = told_of_configs({"name": "m", **_tensors()})
    assert line.startswith("TK114 m, backend: neither backend nor platform is given")


def test_a_platform_of_another_backend(told_of_configs):
    (line,) = told_of_configs({"name": "m", "backend": "onnxruntime", "platform": "tensorrt_plan", **_tensors()})
    assert line.startswith("TK115 m, platform: platform tensorrt_plan beside backend onnxruntime")


def test_a_platform_beside_a_backend_that_has_none(told_of_configs):
    (line,) = told_of_configs({"name": "m", "backend": "python", "platform": "onnxruntime_onnx", **_tensors()})
    assert line.startswith("TK117 m, platform: platform onnxruntime_onnx beside backend python")


def test_a_platform_that_no_backend_has(told_of_configs):
    (line,) = told_of_configs({"name": "m", "platform": "python", **_tensors()})
    assert line.startswith("TK114 m, platform: platform 'python' and no backend")
