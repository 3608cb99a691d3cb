"""model.json and the environment of the engine. No engine runs."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import llm_cores
import llm_engine
import pytest
from llm_engine import (
    EngineError,
    check_arguments,
    check_instance,
    engine_environment,
    read_model_json,
    with_cpu_defaults,
)

KNOWN = ("model", "tokenizer", "max_model_len", "tensor_parallel_size", "speculative_config", "disable_log_stats")


def read(folder: Path, **arguments: Any) -> dict[str, Any]:
    return check_arguments(read_model_json(json.dumps(arguments)), folder, KNOWN)


def environment(**changes: Any) -> dict[str, str]:
    options: dict[str, Any] = {
        "parameters": {},
        "kind": "CPU",
        "device_id": "0",
        "local": True,
        "present": {},
        "eager": True,
        "threads": 1,
        **changes,
    }
    return engine_environment(options.pop("parameters"), **options)


def test_a_folder_beside_model_json_becomes_absolute(tmp_path: Path) -> None:
    (tmp_path / "checkpoint").mkdir()
    arguments = read(tmp_path, model="checkpoint", tokenizer="checkpoint", speculative_config={"model": "checkpoint"})
    whole = str(tmp_path / "checkpoint")
    assert (arguments["model"], arguments["tokenizer"]) == (whole, whole)
    assert arguments["speculative_config"] == {"model": whole}
    assert llm_engine.is_local(arguments)
    assert llm_engine.is_local({"model": "checkpoint"}, tmp_path)


def test_another_name_goes_to_vllm_as_it_is(tmp_path: Path) -> None:
    arguments = read(tmp_path, model="google/gemma-3-270m")
    assert arguments["model"] == "google/gemma-3-270m"
    assert not llm_engine.is_local(arguments)


def test_a_path_that_is_not_there_is_no_hugging_face_name(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="model.json: no folder ./checkpoint"):
        read(tmp_path, model="./checkpoint")


def test_unknown_arguments_are_all_named_with_their_nearest_match(tmp_path: Path) -> None:
    with pytest.raises(
        EngineError, match="unknown max-model-len, wibble; .*did you mean max_model_len.*nothing is like wibble"
    ):
        read(tmp_path, model="x", **{"max-model-len": 5, "wibble": 1})


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"model": ""}', '{"model": 5}'])
def test_what_names_no_model_is_refused(text: str) -> None:
    with pytest.raises(EngineError, match="^model.json: "):
        read_model_json(text)


def test_the_arguments_of_the_installed_vllm_are_known() -> None:
    pytest.importorskip("vllm", reason="the extra `llm` is not installed")
    known = set(llm_engine.known_arguments())
    assert known >= {
        "model",
        "tensor_parallel_size",
        "quantization",
        "max_num_batched_tokens",
        "gpu_memory_utilization",
        "kv_cache_memory_bytes",
        "max_model_len",
        "enable_prefix_caching",
        "speculative_config",
        "enforce_eager",
        "distributed_executor_backend",
        "override_generation_config",
        *llm_engine.DEFAULTS,
    }


def test_a_local_model_never_asks_the_network() -> None:
    assert environment(local=True)["HF_HUB_OFFLINE"] == "1"
    assert "HF_HUB_OFFLINE" not in environment(local=False)


def test_usage_is_never_reported() -> None:
    assert environment()["VLLM_NO_USAGE_STATS"] == "1"


def test_what_the_config_says_wins_over_the_environment_and_that_over_our_defaults() -> None:
    found = environment(
        parameters={"environment.OMP_NUM_THREADS": "3", "other": "x"},
        present={"OMP_NUM_THREADS": "5", "PYTHONUTF8": "0"},
    )
    assert found["OMP_NUM_THREADS"] == "3"
    assert "PYTHONUTF8" not in found and "other" not in found
    assert "OMP_NUM_THREADS" not in environment(present={"OMP_NUM_THREADS": "5"})


def test_an_instance_on_one_gpu_sees_that_gpu_alone() -> None:
    assert environment(kind="GPU", device_id="1")["CUDA_VISIBLE_DEVICES"] == "1"
    assert "CUDA_VISIBLE_DEVICES" not in environment(kind="MODEL")


def test_an_engine_over_several_gpus_needs_kind_model() -> None:
    check_instance({"tensor_parallel_size": 2}, "MODEL")
    check_instance({}, "GPU")
    with pytest.raises(EngineError, match="KIND_MODEL is needed"):
        check_instance({"tensor_parallel_size": 2, "pipeline_parallel_size": 2}, "GPU")


def test_on_cpus_the_cache_is_small_unless_something_is_said() -> None:
    assert with_cpu_defaults({}, {})["kv_cache_memory_bytes"] == 2**30
    assert with_cpu_defaults({"kv_cache_memory_bytes": 5}, {})["kv_cache_memory_bytes"] == 5
    assert with_cpu_defaults({"gpu_memory_utilization": 0.9}, {})["kv_cache_memory_bytes"] == 2**30
    assert "kv_cache_memory_bytes" not in with_cpu_defaults({}, {"VLLM_CPU_KVCACHE_SPACE": "4"})
    assert with_cpu_defaults({"enforce_eager": False}, {})["enforce_eager"] is False


def test_only_an_eager_engine_on_a_cpu_compiles_nothing() -> None:
    assert environment(kind="CPU")["TORCH_COMPILE_DISABLE"] == "1"
    assert "TORCH_COMPILE_DISABLE" not in environment(kind="CPU", eager=False)
    assert "TORCH_COMPILE_DISABLE" not in environment(kind="MODEL")


def test_the_gap_between_responses_is_a_parameter_of_the_config() -> None:
    assert llm_engine.response_gap_s({}) == 0.04
    assert llm_engine.response_gap_s({"response_gap_ms": "0"}) == 0


@pytest.mark.parametrize("text", ["", "soon", "-1", "nan", "inf", "1001"])
def test_another_gap_is_refused_when_loading(text: str) -> None:
    with pytest.raises(
        llm_engine.EngineError, match=f"parameter response_gap_ms: '{text}'; milliseconds from 0 to 1000"
    ):
        llm_engine.response_gap_s({"response_gap_ms": text})


ALL = frozenset(range(8))
CORES = "import os; print(os.sched_getaffinity(0))"


def test_the_engine_stays_on_the_cores_it_is_told() -> None:
    assert llm_cores.cores_of("nobind", ALL) == ALL
    assert llm_cores.cores_of("auto", ALL) == ALL - {0}
    assert llm_cores.cores_of("auto", frozenset({3})) == {3}
    assert llm_cores.cores_of("1,4-6", ALL) == {1, 4, 5, 6}
    name = f"environment.{llm_cores.VARIABLE}"
    assert llm_cores.setting_of({name: "1"}, {llm_cores.VARIABLE: "2"}) == "1"
    assert llm_cores.setting_of({}, {llm_cores.VARIABLE: "2"}) == "2"
    assert llm_cores.setting_of({}, {}) == "auto"


def test_one_core_is_left_for_others_unless_the_engine_has_its_own() -> None:
    assert llm_cores.threads_of(ALL, ALL) == 7
    assert llm_cores.threads_of(frozenset({0}), frozenset({0})) == 1
    assert llm_cores.threads_of(frozenset({1, 4}), ALL) == 2


@pytest.mark.parametrize("text", ["8", "1,", "x", "6-9", "3-1", "-1"])
def test_cores_that_are_not_there_are_refused(text: str) -> None:
    with pytest.raises(EngineError, match=f"VLLM_CPU_OMP_THREADS_BIND: '{text}'; .*0, 1, 2, 3, 4, 5, 6, 7.*correct or"):
        llm_cores.cores_of(text, ALL)


def test_what_is_started_inside_stays_there_and_this_process_is_free_again() -> None:
    available = llm_cores.available_cores()
    if len(available) == 1:
        pytest.skip("this machine has one core")
    other = threading.Event()
    beside = threading.Thread(target=other.wait)
    with llm_cores.started_on(frozenset({max(available)})):
        inside = subprocess.run([sys.executable, "-c", CORES], capture_output=True, text=True, check=True).stdout
        beside.start()
    assert inside.strip() == str({max(available)})
    assert llm_cores.available_cores() == available
    assert os.sched_getaffinity(beside.native_id or 0) == available, "a thread begun meanwhile is free, too"
    other.set()
    beside.join()
