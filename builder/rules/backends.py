"""Which backend runs a model, and rules about whether the target's server has it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from builder.catalog import Catalog, Entry
from builder.findings import Problem, rule
from builder.tensors import did_you_mean

# Platform of a config to the backend that runs it, for backends whose platforms the server knows.
PLATFORMS = {
    "tensorrt_plan": "tensorrt",
    "tensorflow_graphdef": "tensorflow",
    "tensorflow_savedmodel": "tensorflow",
    "onnxruntime_onnx": "onnxruntime",
    "pytorch_libtorch": "pytorch",
}
_FILES = {
    "python": "model.py",
    "onnxruntime": "model.onnx",
    "tensorrt": "model.plan",
    "pytorch": "model.pt",
    "openvino": "model.xml",
    "vllm": "model.json",
    "dali": "model.dali",
}


def backend_of(config: Mapping[str, Any]) -> str:
    """The backend that a config leads to; empty where it leads to none, or to an ensemble."""
    return str(config.get("backend") or PLATFORMS.get(config.get("platform", ""), ""))


def model_file(config: Mapping[str, Any]) -> str | None:
    """The file that the backend loads from a version folder; None where nothing is known of the backend."""
    backend = backend_of(config)
    if backend not in _FILES:
        return None
    return str(config.get("default_model_filename") or _FILES[backend])


@rule(
    "TK121",
    "error",
    "backend that the target's server does not have",
    why="core: unable to find backend library",
)
def absent_backend(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """Each image has its own backends; none has all."""
    backend = backend_of(entry.config)
    if not backend or entry.is_ensemble or backend in catalog.target.backends or _brings_its_own(entry, backend):
        return
    elsewhere = catalog.target.images_with(backend)
    yield Problem(
        path=("backend",) if entry.config.get("backend") else ("platform",),
        found=f"{catalog.target.name} has no backend {backend}{did_you_mean(backend, catalog.target.backends)}",
        expected=f"one of {', '.join(sorted(catalog.target.backends))} is needed",
        fix=f"Serve it with {' or '.join(elsewhere)}"
        if elsewhere
        else "Correct the name, or put the backend's library into the model's folder",
    )


def _brings_its_own(entry: Entry, backend: str) -> bool:
    """A backend's library may lie in the version folder, the model's folder or the server's backend folder."""
    library = f"libtriton_{backend}.so"
    folder = entry.folder
    return folder is not None and (folder.has(library) or any(library in one.files for one in folder.versions))


@rule("TK122", "error", "runtime that is not there", why="core: unable to find backend library (field runtime)")
def absent_runtime(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """`runtime` names the library of the backend, where a backend has several."""
    runtime, backend = entry.config.get("runtime", ""), backend_of(entry.config)
    if not runtime or entry.is_ensemble or entry.folder is None or runtime == f"libtriton_{backend}.so":
        return
    there = entry.folder.has(runtime) or any(runtime in one.files for one in entry.folder.versions)
    if runtime == "model.py" and backend != "python" or (there and runtime != "model.py"):
        return
    yield Problem(
        path=("runtime",),
        found=f"runtime {runtime!r}",
        expected=f"libtriton_{backend}.so, or a library in the model's folder, is needed",
        fix="Take runtime out; the backend's own is the default",
    )


@rule(
    "TK123",
    "error",
    "repository agent that the target's server does not have",
    why="core: unable to find libtritonrepoagent",
)
def absent_agent(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """Agents are libraries of the server; the NGC images have `checksum`, the embedded server none."""
    known = catalog.target.agents
    for index, agent in enumerate(entry.config.get("model_repository_agents", {}).get("agents", ())):
        if agent.get("name", "") not in known:
            yield Problem(
                path=("model_repository_agents", "agents", index, "name"),
                found=f"{catalog.target.name} has no agent {agent.get('name', '')!r}",
                expected=f"one of {', '.join(sorted(known))} is needed" if known else "no agent is possible there",
                fix="Take the agent out, or serve with an image that has it",
            )


@rule(
    "TK125",
    "error",
    "repository agents without any",
    why="The server ends while it reads this config, and every other model with it (seen on 2.51)",
)
def no_agents(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """`model_repository_agents` with an empty list of agents."""
    if "model_repository_agents" in entry.config and not entry.config["model_repository_agents"].get("agents"):
        yield Problem(
            path=("model_repository_agents",),
            found="model_repository_agents without agents",
            expected="at least one agent is needed",
            fix="Take it out",
        )


@rule(
    "TK124", "error", "metric tag that is no label name", why="The server ends while it loads this model (seen on 2.51)"
)
def metric_tags(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """Keys of metric_tags become labels of Prometheus, which are letters, digits and _, and do not begin with __."""
    for key in entry.config.get("metric_tags", {}) if not entry.is_ensemble else ():
        plain = key.replace("_", "a")
        if key and (not (plain.isascii() and plain.isalnum()) or key[0].isdigit() or key.startswith("__")):
            yield Problem(
                path=("metric_tags", key),
                found=f"the key {key!r}",
                expected="letters, digits and _ are needed, no digit first, no __ first",
                fix=f"Write {_label(key)}",
                why="The server ends while it loads this model, and every other model with it: Invalid label name "
                "(prometheus-cpp; seen on 2.51)",
            )


@rule(
    "TK126",
    "warning",
    "accelerator that the target's ONNX backend passes over",
    why="tritonkit's own ONNX backend, mounted into NVIDIA's image, computes by CUDA or on the host",
    server="accepts",
)
def absent_accelerator(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """A `gpu_execution_accelerator` other than cuda, for `stock-vllm`."""
    if catalog.target.image != "stock-vllm" or backend_of(entry.config) != "onnxruntime":
        return
    accelerators = entry.config.get("optimization", {}).get("execution_accelerators", {})
    for index, one in enumerate(accelerators.get("gpu_execution_accelerator", ())):
        if one.get("name") != "cuda":
            yield Problem(
                path=("optimization", "execution_accelerators", "gpu_execution_accelerator", index, "name"),
                found=f"accelerator {one.get('name', '')!r}",
                expected="the ONNX backend of this server knows cuda alone, and computes by it",
                fix="Serve it with docker/Dockerfile's image, or take the accelerator out",
            )


def _label(key: str) -> str:
    """The key with everything replaced that a label's name cannot have."""
    return "".join(sign if sign.isascii() and sign.isalnum() else "_" for sign in key).lstrip("_0123456789") or "tag"
