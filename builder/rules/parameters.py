"""Rules about `parameters`: keys that a backend reads, and the values it takes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from builder.catalog import Catalog, Entry
from builder.findings import Problem, rule
from builder.rules.backends import backend_of
from builder.tensors import nearest

_KEYS = {
    "python": ("FORCE_CPU_ONLY_INPUT_TENSORS", "EXECUTION_ENV_PATH", "TRITON_BATCH_STRATEGY_PATH"),
    "onnxruntime": (
        "gpu_mem_limit",
        "arena_extend_strategy",
        "cudnn_conv_algo_search",
        "do_copy_in_default_stream",
        "intra_op_thread_count",
        "inter_op_thread_count",
        "execution_mode",
        "enable_mem_arena",
        "enable_mem_pattern",
        "memory.enable_memory_arena_shrinkage",
    ),
    "tensorrt": ("execution_context_allocation_strategy",),
    "vllm": ("REPORT_CUSTOM_METRICS", "ENABLE_VLLM_HEALTH_CHECK"),
}
# The first release whose stub is built with a pybind11 that knows numpy 2.
NUMPY_2 = (2, 52, 0)
_FORCE = "FORCE_CPU_ONLY_INPUT_TENSORS"
_ENVIRONMENT = "EXECUTION_ENV_PATH"
_VARIABLE = "$$TRITON_MODEL_DIRECTORY/"


@rule("TK131", "error", "FORCE_CPU_ONLY_INPUT_TENSORS that is neither yes nor no", why="pb: Incorrect value (PYB-01)")
def force_cpu(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """The Python backend takes "yes" and "no" only."""
    value = _value(entry, _FORCE)
    if value is not None and value not in ("yes", "no") and backend_of(entry.config) == "python":
        yield Problem(
            path=("parameters", _FORCE),
            found=f"{_FORCE} is {value!r}",
            expected='"yes" or "no" is needed',
            fix=f'Write string_value: "{"no" if value.lower() in ("false", "0", "off", "n", "no") else "yes"}"',
        )


@rule(
    "TK132",
    "error",
    "parameter that the backend does not read",
    why="A backend passes over keys that it does not know, and says nothing (PYB-01)",
    server="accepts",
)
def near_key(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """A key that is nearly one the backend reads: another case, a letter off."""
    known = _KEYS.get(backend_of(entry.config), ())
    for key in entry.config.get("parameters", {}):
        match = nearest(key, known) if key not in known and len(key) > 8 else None
        if match is not None and (match.lower() == key.lower() or _distance_is_small(match, key)):
            yield Problem(
                path=("parameters", key),
                found=f"the parameter {key} is not read by the {backend_of(entry.config)} backend",
                expected=f"{match} is its spelling",
                fix=f"Write {match}",
            )


@rule(
    "TK133",
    "error",
    "Python environment outside the model's folder",
    why="pb: Failed to get the canonical path (PYB-05)",
)
def environment_path(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """EXECUTION_ENV_PATH is a path on the serving machine; only one below the model's folder travels with it."""
    value = _value(entry, _ENVIRONMENT)
    if not value or backend_of(entry.config) != "python":
        return
    if not value.startswith(_VARIABLE):
        kind = "an absolute path of some machine" if value.startswith("/") else "a relative path"
        name = value.rstrip("/").rsplit("/", 1)[-1]
        yield Problem(
            path=("parameters", _ENVIRONMENT),
            found=f"{_ENVIRONMENT} is {kind}, {value}",
            expected="a path below the model's folder is needed",
            fix=f'Copy it into the model\'s folder and write "{_VARIABLE}{name}"',
        )
    elif entry.folder is not None and value not in entry.folder.environments:
        yield Problem(
            path=("parameters", _ENVIRONMENT),
            found=f"there is no {value.removeprefix(_VARIABLE)} in the model's folder",
            expected="the packed environment is needed there",
            fix="Copy it there (conda-pack), or take the parameter out",
        )


@rule(
    "TK134",
    "error",
    "packed Python environment that does not fit the server",
    why="The stub that runs the model is built for one minor version of Python and one kind of machine (PYB-06)",
    server="accepts",
)
def environment_fits(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """Python's minor version, the machine, and the packages that model.py imports."""
    if entry.folder is None:
        return
    for value, environment in entry.folder.environments.items():
        place = ("parameters", _ENVIRONMENT)
        wanted = catalog.target.python
        own_stub = entry.folder.has("triton_python_backend_stub")
        if environment.problem:
            yield Problem(
                path=place,
                found=environment.problem,
                expected="an archive made by conda-pack is needed",
                fix="Pack it again",
            )
            continue
        if environment.python and wanted and environment.python != wanted and not own_stub:
            yield Problem(
                path=place,
                found=f"{value} holds Python {environment.python}",
                expected=f"the stub of {catalog.target.name} is built for Python {wanted}",
                fix=f"Pack an environment of Python {wanted}, or put a triton_python_backend_stub built for "
                f"{environment.python} beside config.pbtxt",
            )
        if environment.machine and environment.machine not in ("x86-64", "aarch64"):
            yield Problem(
                path=place,
                found=f"{value} was packed for {environment.machine}",
                expected="programs for Linux on x86-64 or aarch64 are needed",
                fix="Pack it on Linux",
            )
        numpy = next(
            (name for name in environment.packages if re.match(r"numpy-([2-9]|\d\d)\..*dist-info", name)), None
        )
        if numpy is not None and catalog.target.triton < NUMPY_2 and not own_stub:
            yield Problem(
                path=place,
                found=f"{value} holds {numpy.removesuffix('.dist-info')}",
                expected=f"numpy below 2 is needed: the stub of {catalog.target.name} is older than it",
                fix='Install "numpy<2" into the environment and pack it again',
            )
        for version, source in entry.folder.python.items():
            for one in source.imports:
                if environment.packages and not _is_there(one.word, environment.packages, entry, version):
                    yield Problem(
                        file=f"{entry.name}/{version}/model.py",
                        line=one.line,
                        found=f"model.py imports {one.word}, which {value} does not hold",
                        expected="every package that the model imports is needed in its environment",
                        fix=f"Install {one.word} into the environment and pack it again",
                    )


def _is_there(module: str, packages: frozenset[str], entry: Entry, version: str) -> bool:
    import sys

    beside = entry.folder is not None and any(
        one.name == version and (f"{module}.py" in one.files or module in one.files) for one in entry.folder.versions
    )
    known = ("triton_python_backend_utils", "numpy", "c_python_backend_utils")
    return beside or module in sys.stdlib_module_names or module in known or module in packages


@rule(
    "TK135",
    "warning",
    "ONNX Runtime parameters that undo the memory limit",
    why="ort: the parameters block is read last and lifts the limit where it does not give one",
    server="accepts",
)
def memory_limit_undone(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """gpu_mem_limit in the accelerator's parameters beside a parameters block without it."""
    if backend_of(entry.config) != "onnxruntime" or not entry.config.get("parameters"):
        return
    if "gpu_mem_limit" in entry.config["parameters"]:
        return
    accelerators = entry.config.get("optimization", {}).get("execution_accelerators", {})
    for index, one in enumerate(accelerators.get("gpu_execution_accelerator", ())):
        if "gpu_mem_limit" in one.get("parameters", {}):
            yield Problem(
                path=(
                    "optimization",
                    "execution_accelerators",
                    "gpu_execution_accelerator",
                    index,
                    "parameters",
                    "gpu_mem_limit",
                ),
                found="gpu_mem_limit stands in the accelerator, and there is a parameters block without it",
                expected="one place for both is needed",
                fix='Move gpu_mem_limit into parameters { key: "gpu_mem_limit" value { string_value: ... } }',
            )


def _value(entry: Entry, key: str) -> str | None:
    parameters = entry.config.get("parameters", {})
    return str(parameters[key].get("string_value", "")) if key in parameters else None


def _distance_is_small(left: str, right: str) -> bool:
    from difflib import SequenceMatcher

    return SequenceMatcher(None, left.lower(), right.lower()).ratio() > 0.9
