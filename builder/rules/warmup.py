"""Rules about warm-up samples (DEP-09): each mistake makes the model unavailable, after its weights were loaded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from builder.catalog import Catalog, Entry
from builder.findings import Problem, rule
from builder.tensors import did_you_mean, dims_agree, dims_text

_WHY = "core: the warm-up request is checked like any request, when the model loads (DEP-09)"


@rule(
    "TK711",
    "error",
    "warm-up for an input that the model does not have",
    why="The server passes over it (seen on 2.51)",
    server="accepts",
)
def unknown_sample(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """A sample for no input of the model."""
    known = entry.tensors("input")
    for index, warmup in _warmups(entry):
        for name in warmup.get("inputs", {}):
            if name not in known and known:
                yield Problem(
                    tensor=name,
                    side="input",
                    path=("model_warmup", index, "inputs", name),
                    found=f"there is no input {name}{did_you_mean(name, known)}",
                    expected=f"one of {', '.join(known)} is needed",
                    fix="Name an input of the model",
                )


@rule("TK712", "error", "warm-up without an input that the model needs", why=_WHY)
def missing_sample(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """A sample request that leaves a required input out."""
    for index, warmup in _warmups(entry):
        for name, declared in entry.tensors("input").items():
            if name not in warmup.get("inputs", {}) and not declared.get("optional"):
                yield Problem(
                    tensor=name,
                    side="input",
                    path=("model_warmup", index, "inputs"),
                    found=f"the sample {warmup.get('name', index)} has no {name}",
                    expected="every input that is not optional is needed",
                    fix=f"Add {name} with its data_type, dims and zero_data: true",
                )


@rule("TK713", "error", "warm-up with other dims or type than the input", why=_WHY)
def wrong_sample(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """Dims of a sample are concrete, without the batch, and fit the input's."""
    known = entry.tensors("input")
    for index, warmup in _warmups(entry):
        for name, sample in warmup.get("inputs", {}).items():
            declared = known.get(name, {})
            dims, wanted = sample.get("dims", ()), declared.get("dims", ())
            if wanted and (not dims_agree(dims, wanted) or -1 in dims):
                yield Problem(
                    tensor=name,
                    side="input",
                    path=("model_warmup", index, "inputs", name, "dims"),
                    found=f"the sample has dims {dims_text(dims)}",
                    expected=f"sizes that fit {dims_text(wanted)}, each 1 or more and without the batch, are needed",
                    fix="Write dims as one item of a batch has them",
                )
            if declared and not any(field in sample for field in ("zero_data", "random_data", "input_data_file")):
                yield Problem(
                    tensor=name,
                    side="input",
                    path=("model_warmup", index, "inputs", name),
                    found="the sample has no data",
                    expected="zero_data, random_data or input_data_file is needed",
                    fix="Write zero_data: true",
                )
            if declared.get("data_type") and sample.get("data_type") != declared["data_type"]:
                yield Problem(
                    tensor=name,
                    side="input",
                    path=("model_warmup", index, "inputs", name, "data_type"),
                    found=f"the sample is {sample.get('data_type', 'of no type')}",
                    expected=f"{declared['data_type']} is needed",
                    fix="Correct the sample's data_type",
                )


@rule(
    "TK714",
    "error",
    "warm-up with a larger batch than the model takes",
    why="The server ends now and then, every other model with it, or refuses this one (DEP-09, seen on 2.51)",
)
def batch_of_sample(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """batch_size of a sample is at most max_batch_size."""
    most = entry.config.get("max_batch_size", 0)
    for index, warmup in _warmups(entry):
        size = warmup.get("batch_size", 0)
        if size > max(most, 1):
            yield Problem(
                path=("model_warmup", index, "batch_size"),
                found=f"batch_size {size} with max_batch_size {most}",
                expected=f"at most {max(most, 1)} is needed",
                fix="Lower batch_size, or raise max_batch_size",
            )


@rule(
    "TK715",
    "warning",
    "warm-up that never runs",
    why="core: a sample whose batch_size is 0, which is the default, is skipped (seen on 2.51)",
    server="accepts",
)
def idle_sample(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """A sample without batch_size, on models that batch and on models that do not."""
    for index, sample in enumerate(entry.config.get("model_warmup", ())) if not entry.is_ensemble else ():
        if not sample.get("batch_size", 0):
            yield Problem(
                path=("model_warmup", index),
                found=f"the sample {sample.get('name') or index} has batch_size 0",
                expected="1 or more is needed, also where max_batch_size is 0",
                fix="Write batch_size: 1",
            )


def _warmups(entry: Entry) -> Iterator[tuple[int, Mapping[str, Any]]]:
    if entry.is_ensemble:
        return
    for index, sample in enumerate(entry.config.get("model_warmup", ())):
        if sample.get("batch_size", 0):
            yield index, sample
