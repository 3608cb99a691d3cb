"""From model.json to a running vLLM engine.

In: the text of model.json (engine arguments by vLLM's names), the folder it lies in, the `parameters` of config.pbtxt.
Out: the environment that vLLM reads, checked AsyncEngineArgs, an AsyncLLM.
"""

import dataclasses
import difflib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

MODEL_JSON = "model.json"
ENVIRONMENT_PREFIX = "environment."
DEFAULTS = {"disable_log_stats": True}
CPU_KV_CACHE_BYTES = 2**30
GAP, GAP_MS, MOST_GAP_MS = "response_gap_ms", "40", 1000.0


class EngineError(RuntimeError):
    """Why the engine cannot start, in four parts: where, found, expected, what to do."""


def read_model_json(text: str) -> dict[str, Any]:
    """The engine arguments as they are written.

    Raises:
        EngineError: no JSON object, or no model in it.
    """
    try:
        given = json.loads(text)
    except json.JSONDecodeError as error:
        raise EngineError(
            f"{MODEL_JSON}: no JSON ({error}); engine arguments as a JSON object are needed; correct it"
        ) from error
    if not isinstance(given, dict) or not isinstance(given.get("model"), str) or not given["model"]:
        raise EngineError(
            f'{MODEL_JSON}: no "model"; a folder or a Hugging Face name is needed; add "model": "checkpoint"'
        )
    return given


def check_arguments(given: Mapping[str, Any], folder: Path, known: tuple[str, ...]) -> dict[str, Any]:
    """Engine arguments, every name known to the installed vLLM, paths made absolute.

    Raises:
        EngineError: unknown names (all are named, each with its nearest match), or a folder that is not there.
    """
    unknown = [name for name in given if name not in known]
    if unknown:
        raise EngineError(
            f"{MODEL_JSON}: unknown {', '.join(unknown)}; names of vLLM's AsyncEngineArgs are needed "
            f"({'; '.join(_hint(name, known) for name in unknown)}); correct or remove them"
        )
    return {**DEFAULTS, **_with_absolute_paths(given, folder)}


def _hint(name: str, known: tuple[str, ...]) -> str:
    close = difflib.get_close_matches(name.replace("-", "_").lower(), known, n=1)
    return f"did you mean {close[0]} instead of {name}?" if close else f"nothing is like {name}"


def _with_absolute_paths(given: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Folders beside model.json by their whole path; other names (Hugging Face) as they are."""
    resolved = dict(given)
    for name in ("model", "tokenizer", "hf_config_path"):
        if isinstance(given.get(name), str):
            resolved[name] = model_path(given[name], folder)
    draft = given.get("speculative_config")
    if isinstance(draft, dict) and isinstance(draft.get("model"), str):
        resolved["speculative_config"] = {**draft, "model": model_path(draft["model"], folder)}
    return resolved


def model_path(name: str, folder: Path) -> str:
    """The folder that `name` means, or `name` itself when it is a Hugging Face name."""
    if (folder / name).exists():
        return str((folder / name).resolve())
    if name.startswith((".", "/")):
        raise EngineError(f"{MODEL_JSON}: no folder {name}; the folder of a checkpoint is needed; correct the path")
    return name


def is_local(arguments: Mapping[str, Any], folder: Path = Path()) -> bool:
    """Whether the weights lie on this machine, so that nothing need be asked of the network."""
    return (folder / arguments["model"]).exists()


def engine_environment(
    parameters: Mapping[str, str],
    *,
    kind: str,
    device_id: str,
    local: bool,
    eager: bool,
    present: Mapping[str, str],
    threads: int,
) -> dict[str, str]:
    """Variables to set before vLLM is imported; what is `present` already stays, what config.pbtxt says wins.

    On CPUs vLLM binds no thread to a core: llm_cores.py says where the engine stays. An eager engine there compiles
    nothing: the first request for logprobs would wait for seconds, and all others with it.
    """
    wanted = {
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_LOGGING_LEVEL": "WARNING",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "OMP_NUM_THREADS": str(threads),
        "TOKENIZERS_PARALLELISM": "false",
        # the embedded interpreter starts in the C locale; what it starts takes its encoding from here
        "PYTHONUTF8": "1",
        "LC_ALL": "C.UTF-8",
    }
    if local:
        wanted["HF_HUB_OFFLINE"] = "1"
    if eager and kind == "CPU":
        wanted["TORCH_COMPILE_DISABLE"] = "1"
    environment = {name: value for name, value in wanted.items() if name not in present}
    if kind == "GPU":
        environment["CUDA_VISIBLE_DEVICES"] = device_id
    for key, value in parameters.items():
        if key.startswith(ENVIRONMENT_PREFIX):
            environment[key.removeprefix(ENVIRONMENT_PREFIX)] = value
    return environment


def response_gap_s(parameters: Mapping[str, str]) -> float:
    """Seconds from one response of an answer to the next, at least; see llm_pieces.py.

    Raises:
        EngineError: no such number.
    """
    text = parameters.get(GAP, GAP_MS)
    try:
        gap_ms = float(text)
    except ValueError:
        gap_ms = -1.0
    if not 0 <= gap_ms <= MOST_GAP_MS:
        raise EngineError(
            f"config.pbtxt, parameter {GAP}: {text!r}; milliseconds from 0 to {MOST_GAP_MS:.0f} are needed; correct or "
            "remove it"
        )
    return gap_ms / 1000


def device_count(arguments: Mapping[str, Any]) -> int:
    return int(arguments.get("tensor_parallel_size") or 1) * int(arguments.get("pipeline_parallel_size") or 1)


def check_instance(arguments: Mapping[str, Any], kind: str) -> None:
    """An engine over several GPUs must see them all, which an instance of KIND_GPU does not."""
    devices = device_count(arguments)
    if devices > 1 and kind == "GPU":
        raise EngineError(
            f"{MODEL_JSON}: tensor_parallel_size x pipeline_parallel_size is {devices} on an instance of KIND_GPU, "
            "which sees one GPU; KIND_MODEL is needed; set kind: KIND_MODEL in instance_group"
        )


def known_arguments() -> tuple[str, ...]:
    """The names of the installed vLLM's AsyncEngineArgs."""
    from vllm.engine.arg_utils import AsyncEngineArgs

    return tuple(field.name for field in dataclasses.fields(AsyncEngineArgs) if field.init)


def start_engine(arguments: dict[str, Any], stat_loggers: list[Any]) -> Any:
    """A running AsyncLLM, for one event loop; starting it may be done beside that.

    Args:
        stat_loggers: what vLLM tells about itself goes there; it keeps no account without any.

    Raises:
        EngineError: vLLM refuses the arguments, or its processes do not come up.
    """
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.platforms import current_platform
    from vllm.v1.engine.async_llm import AsyncLLM

    if current_platform.is_cpu() and device_count(arguments) == 1:
        # One process of 0.9 GB and 6 s of start less. vLLM would give the work to a further process to bind it to
        # cores, which we do not want (see engine_environment), and calls the choice by this variable.
        os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
        arguments = {"distributed_executor_backend": "uni", **arguments}
    if current_platform.is_cpu():
        arguments = with_cpu_defaults(arguments, os.environ)
    try:
        if not stat_loggers:
            return AsyncLLM.from_engine_args(AsyncEngineArgs(**arguments))
        told = AsyncEngineArgs(**{**arguments, "disable_log_stats": False})
        return AsyncLLM.from_engine_args(told, stat_loggers=stat_loggers)
    except Exception as error:  # whatever it is, the model cannot load, and this is what the log shows
        raise EngineError(_why_not_started(arguments, error)) from error


def with_cpu_defaults(arguments: Mapping[str, Any], environment: Mapping[str, str]) -> dict[str, Any]:
    """Sizes that leave room for others. vLLM's own would take nine tenths of the memory and compile for a minute.

    gpu_memory_utilization is left to GPUs: one model.json serves both, and vLLM would take it for a share of the RAM.
    """
    cache = {} if "VLLM_CPU_KVCACHE_SPACE" in environment else {"kv_cache_memory_bytes": CPU_KV_CACHE_BYTES}
    return {"enforce_eager": True, **cache, **arguments}


def _why_not_started(arguments: Mapping[str, Any], error: Exception) -> str:
    model = arguments["model"]
    taken = "" if is_local(arguments) else f" (no folder {model} beside {MODEL_JSON}: taken for a Hugging Face name)"
    text = " ".join(str(error).split())
    return f"{MODEL_JSON}: vLLM could not start {model}{taken}: {type(error).__name__}: {text}"


def refusals() -> tuple[type[Exception], ...]:
    """What vLLM raises for a request that it will not serve; its own class came only lately."""
    import vllm.exceptions

    return (ValueError, getattr(vllm.exceptions, "VLLMClientError", ValueError))


def use_utf8() -> None:
    """Let this interpreter read files as UTF-8: the stub's starts in the C locale and takes no notice of PYTHONUTF8."""
    import locale

    locale.setlocale(locale.LC_CTYPE, "C.UTF-8")
