"""Rules about instance groups and the hardware of the profile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from builder.catalog import Catalog, Entry
from builder.findings import Problem, rule

_AUTO = ", which is KIND_CPU in the cpu profile"
_WHY = "core: model_config_utils.cc, ValidateInstanceGroup"


@rule(
    "TK701",
    "error",
    "GPU instances where there is no GPU",
    why="core: has kind KIND_GPU but no GPUs are available (INS-01)",
)
def gpu_on_cpu(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """KIND_GPU in the CPU profile."""
    for index, group in _groups(entry):
        if group.get("kind") == "KIND_GPU" and catalog.profile == "cpu":
            yield Problem(
                path=("instance_group", index, "kind"),
                found="KIND_GPU in the cpu profile",
                expected="KIND_CPU is needed there",
                fix="Write KIND_CPU, and KIND_GPU for the gpu profile",
            )


@rule("TK702", "error", "GPU numbers on a kind that takes none", why=_WHY)
def gpus_without_gpu(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """gpus beside KIND_CPU or KIND_MODEL."""
    for index, group in _groups(entry):
        kind = group.get("kind", "KIND_AUTO")
        without = kind in ("KIND_CPU", "KIND_MODEL") or (kind == "KIND_AUTO" and catalog.profile == "cpu")
        if group.get("gpus") and without:
            yield Problem(
                path=("instance_group", index, "gpus"),
                found=f"gpus {list(group['gpus'])} with {kind}{_AUTO if kind == 'KIND_AUTO' else ''}",
                expected="gpus go with KIND_GPU only",
                fix="Take gpus out, or write KIND_GPU",
            )


@rule("TK703", "error", "profile outside TensorRT", why=_WHY)
def profile_outside_tensorrt(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """An optimization profile on a model that TensorRT does not run."""
    for index, group in _groups(entry):
        if group.get("profile") and not _is_tensorrt(entry):
            yield Problem(
                path=("instance_group", index, "profile"),
                found="profile on a model that TensorRT does not run",
                expected="it is known to TensorRT models only",
                fix="Take it out",
            )


@rule("TK704", "error", "TensorRT on the CPU", why="The TensorRT backend has no CPU instances (INS-01)")
def tensorrt_on_cpu(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """KIND_CPU, or the CPU profile, for a TensorRT model."""
    for index, group in _groups(entry):
        if _is_tensorrt(entry) and group.get("kind") == "KIND_CPU":
            yield Problem(
                path=("instance_group", index, "kind"),
                found="KIND_CPU on a TensorRT model",
                expected="KIND_GPU is needed",
                fix="Write KIND_GPU, or serve the ONNX file on the CPU",
            )


@rule(
    "TK705",
    "error",
    "several engines on one device",
    why="Each KIND_MODEL instance is a whole engine on the same device (INS-04)",
    server="accepts",
)
def many_engines(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """More than one KIND_MODEL instance of vLLM."""
    for index, group in _groups(entry):
        if group.get("kind") == "KIND_MODEL" and group.get("count", 1) > 1 and _is_engine(entry):
            yield Problem(
                path=("instance_group", index, "count"),
                found=f"{group['count']} instances of KIND_MODEL",
                expected="one is needed: each would load the model again on the same device",
                fix="Write count: 1, and start one server for each GPU with CUDA_VISIBLE_DEVICES to have more",
            )


@rule(
    "TK706",
    "error",
    "negative count of instances",
    why="The server takes it for the default count and says nothing (seen on 2.51)",
    server="accepts",
)
def negative_count(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """A count below 0."""
    for index, group in _groups(entry):
        if group.get("count", 0) < 0:
            yield Problem(
                path=("instance_group", index, "count"),
                found=f"count is {group['count']}",
                expected="1 or more is needed",
                fix="Write count: 1",
            )


@rule(
    "TK708",
    "warning",
    "instances that do not share their lifelines",
    why="Each instance is a process of its own, and a LIFELINE reaches one of them (docs/clients.md)",
    server="accepts",
)
def separate_lifelines(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """Several instances of a model that lets a second request stop the first."""
    if "LIFELINE" not in entry.tensors("input"):
        return
    groups = [(index, group) for index, group in _groups(entry) if group.get("kind") != "KIND_MODEL"]  # TK705
    count = sum(group.get("count", 1) * max(1, len(group.get("gpus", ()))) for _, group in groups)
    if count > 1:
        yield Problem(
            path=("instance_group", groups[0][0]),
            found=f"{count} instances of a model with LIFELINE",
            expected="one is needed: a caller that goes away is heard of in one of them only, and the others write on",
            fix="Write count: 1, and have more copies under names of their own (--chains)",
        )


@rule(
    "TK707",
    "advice",
    "resources that limit nothing by themselves",
    why="core: the rate limiter is off unless the server runs with --rate-limit=execution_count (INS-05)",
    server="accepts",
)
def rate_limiter(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """A rate_limiter in a config; the server's default is to pass over it."""
    needs: dict[str, int] = {}
    first = None
    for index, group in _groups(entry):
        for resource in group.get("rate_limiter", {}).get("resources", ()):
            first = index if first is None else first
            name = resource.get("name", "")
            needs[name] = max(needs.get(name, 0), resource.get("count", 0))
    is_on = catalog.launch is not None and "execution_count" in catalog.launch.values("rate-limit")
    if first is not None and not is_on:
        yield Problem(
            path=("instance_group", first, "rate_limiter"),
            found=f"resources {', '.join(f'{name} (count {count})' for name, count in needs.items())}",
            expected="they are counted only by a server with --rate-limit=execution_count; a count is a number of "
            "tokens, not of bytes",
            fix="Start the server with --rate-limit=execution_count"
            + "".join(f" --rate-limit-resource={name}:{count}" for name, count in needs.items() if name)
            + " or larger",
        )


def _groups(entry: Entry) -> Iterator[tuple[int, Mapping[str, Any]]]:
    # On an ensemble they are wrong altogether (TK601).
    return iter(() if entry.is_ensemble else enumerate(entry.config.get("instance_group", ())))


def _is_tensorrt(entry: Entry) -> bool:
    return entry.config.get("platform") == "tensorrt_plan" or entry.config.get("backend") == "tensorrt"


def _is_engine(entry: Entry) -> bool:
    """Whether each instance holds a whole language model: vLLM, TensorRT-LLM, or our Python model around an engine."""
    described = entry.folder is not None and any(name.endswith("model.json") for name in entry.folder.json_files)
    return entry.config.get("backend") in ("vllm", "tensorrtllm") or described or entry.folder is None
