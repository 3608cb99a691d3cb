"""Opens an ONNX file in ONNX Runtime as the model's configuration says."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import onnxruntime as ort

Config = dict[str, Any]

# `optimization.graph.level` of the configuration; absent or 0 is everything.
GRAPH_LEVELS = {
    -1: ort.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    0: ort.GraphOptimizationLevel.ORT_ENABLE_ALL,
    1: ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    2: ort.GraphOptimizationLevel.ORT_DISABLE_ALL,
}
# Triton's numbers and ONNX Runtime's words for options of the CUDA provider.
CUDA_WORDS = {
    "arena_extend_strategy": {"0": "kNextPowerOfTwo", "1": "kSameAsRequested"},
    "cudnn_conv_algo_search": {"0": "EXHAUSTIVE", "1": "HEURISTIC", "2": "DEFAULT"},
}
EXECUTION_MODES = {0: ort.ExecutionMode.ORT_SEQUENTIAL, 1: ort.ExecutionMode.ORT_PARALLEL}


def onnx_file(version_folder: Path, config: Config) -> Path:
    """The file to open: `default_model_filename`, or the `model.onnx` in it when that is a folder.

    Raises:
        ValueError: there is none.
    """
    path = version_folder / (config.get("default_model_filename") or "model.onnx")
    path = path / "model.onnx" if path.is_dir() else path
    if not path.is_file():
        raise ValueError(f"failed to stat file {path}")
    return path


def open_session(path: Path, config: Config, gpu: int | None = None) -> ort.InferenceSession:
    """A session on the CPU, or on a GPU where its number is given.

    Raises:
        ValueError: a parameter has no meaning, ONNX Runtime refuses the file, or it knows no GPU.
    """
    ort.disable_telemetry_events()
    options, chosen = session_options(config), providers(config, gpu)
    try:
        session = ort.InferenceSession(str(path), options, providers=chosen)
    except Exception as error:  # ONNX Runtime has an exception class per status, with RuntimeError or Exception above
        raise ValueError(f"onnx runtime error: {error}") from error
    check_begun(session, gpu)
    return session


def check_begun(session: ort.InferenceSession, gpu: int | None) -> None:
    """Return if a session that was to compute on a GPU does: ONNX Runtime only logs that it could not begin there.

    Raises:
        ValueError: it would compute on the host.
    """
    if gpu is not None and "CUDAExecutionProvider" not in session.get_providers():
        raise ValueError(
            "KIND_GPU: ONNX Runtime could not load its CUDAExecutionProvider, its own words are in the log; "
            "install the CUDA and cuDNN that this onnxruntime-gpu is for, or use KIND_CPU"
        )


def providers(config: Config, gpu: int | None) -> list[Any]:
    """What computes, the first choice first; options of the CUDA one as the configuration says (Triton's own names).

    Raises:
        ValueError: a GPU is asked for, and the installed ONNX Runtime is for CPUs.
    """
    if gpu is None:
        return ["CPUExecutionProvider"]
    if "CUDAExecutionProvider" not in ort.get_available_providers():
        raise ValueError("KIND_GPU: the installed onnxruntime is for CPUs; install onnxruntime-gpu, or use KIND_CPU")
    ort.preload_dlls()  # CUDA and cuDNN may be Python packages, beside torch: nothing else here loads them
    accelerators = config.get("optimization", {}).get("execution_accelerators", {}).get("gpu_execution_accelerator", [])
    given: dict[str, str] = next((one.get("parameters", {}) for one in accelerators if one["name"] == "cuda"), {})
    chosen = {name: CUDA_WORDS.get(name, {}).get(value, value) for name, value in given.items()}
    return [("CUDAExecutionProvider", {"device_id": str(gpu), **chosen}), "CPUExecutionProvider"]


def session_options(config: Config) -> ort.SessionOptions:
    """Threads, execution mode, graph optimization and memory as the configuration says."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = number(config, "intra_op_thread_count", threads_of_environment())
    options.inter_op_num_threads = number(config, "inter_op_thread_count", 0)
    mode = number(config, "execution_mode", 0)
    if mode not in EXECUTION_MODES:
        raise ValueError(
            f"Invalid configuration value provided. Expected values for execution_mode are 0 or 1 but got {mode}."
        )
    options.execution_mode = EXECUTION_MODES[mode]
    level = int(config.get("optimization", {}).get("graph", {}).get("level", 0))
    options.graph_optimization_level = GRAPH_LEVELS.get(level, ort.GraphOptimizationLevel.ORT_ENABLE_ALL)
    # The other steps are processes of their own: a thread that waits by spinning takes the core that one of them needs.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.enable_cpu_mem_arena = flag(config, "enable_mem_arena", True)
    options.enable_mem_pattern = flag(config, "enable_mem_pattern", True)
    for library in config.get("model_operations", {}).get("op_library_filename", []):
        options.register_custom_ops_library(library)
    return options


def threads_of_environment() -> int:
    """OMP_NUM_THREADS, which the server sets when it is told to use few; 0 is ONNX Runtime's own choice, all cores."""
    value = os.environ.get("OMP_NUM_THREADS", "")
    return int(value) if value.isdigit() else 0


def parameter(config: Config, name: str) -> str | None:
    """The string of one entry under `parameters`."""
    entry = config.get("parameters", {}).get(name)
    return None if entry is None else str(entry["string_value"])


def number(config: Config, name: str, default: int) -> int:
    """A parameter as a number."""
    value = parameter(config, name)
    try:
        return default if value is None else int(value)
    except ValueError:
        raise ValueError(f"failed to convert {name} '{value}' to integral number") from None


def flag(config: Config, name: str, default: bool) -> bool:
    """A parameter as a truth value."""
    value = parameter(config, name)
    if value is None:
        return default
    if value.lower() not in ("0", "1", "false", "true"):
        raise ValueError(f"failed to convert {name} '{value}' to boolean value")
    return value.lower() in ("1", "true")
