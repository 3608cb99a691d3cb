"""Rules about batch_input and batch_output, the tensors that a batcher makes itself (core: ValidateBatchIO)."""

from __future__ import annotations

from collections.abc import Iterator

from builder.catalog import Catalog, Entry
from builder.findings import Problem, rule
from builder.tensors import did_you_mean

_WHY = "core: model_config_utils.cc, ValidateBatchIO"


@rule("TK631", "error", "batch tensor made from something else than one input", why=_WHY)
def batch_sources(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """Every kind takes exactly one source, an input of the model."""
    known = entry.tensors("input")
    for side in ("batch_input", "batch_output"):
        for index, one in enumerate(entry.config.get(side, ())):
            sources = one.get("source_input", ())
            unknown = [name for name in sources if name not in known]
            if len(sources) != 1 or unknown:
                hint = did_you_mean(unknown[0], known) if unknown else ""
                yield Problem(
                    path=(side, index, "source_input"),
                    found=f"source_input is {', '.join(sources) or 'missing'}{hint}",
                    expected=f"one of {', '.join(known) or '(no inputs)'} is needed",
                    fix="Name one input of the model",
                )


@rule("TK632", "error", "batch_input that is neither TYPE_INT32 nor TYPE_FP32", why=_WHY)
def batch_types(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """Counts and shapes are handed over as one of the two."""
    for index, one in enumerate(entry.config.get("batch_input", ())):
        if one.get("data_type", "TYPE_INVALID") not in ("TYPE_INT32", "TYPE_FP32"):
            yield Problem(
                path=("batch_input", index, "data_type"),
                found=f"data_type is {one.get('data_type', 'missing')}",
                expected="TYPE_INT32 or TYPE_FP32 is needed",
                fix="Write data_type: TYPE_INT32",
            )


@rule("TK633", "error", "batch_output for no output of the model", why=_WHY)
def batch_targets(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """Targets are outputs of the model, each named once; without any, the server ends."""
    known = entry.tensors("output")
    for index, one in enumerate(entry.config.get("batch_output", ())):
        names = one.get("target_name", ())
        bad = [name for name in names if name not in known]
        if bad or not names or len(set(names)) < len(names):
            yield Problem(
                path=("batch_output", index, "target_name"),
                found=f"target_name is {', '.join(names) or 'missing'}{did_you_mean(bad[0], known) if bad else ''}",
                expected=f"outputs of the model, each once, are needed: {', '.join(known) or '(none)'}",
                fix="Name the output that is meant",
                why=_WHY if names else "The server ends while it loads this model (seen on 2.51)",
            )


@rule(
    "TK634",
    "error",
    "ragged batch that nobody expects",
    why="A ragged batch is one long tensor; a model needs batch_input to know where each request begins (BAT-09)",
    server="accepts",
)
def ragged(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """allow_ragged_batch on a model of a compiled backend without batch_input."""
    from builder.rules.backends import backend_of

    if entry.config.get("batch_input") or backend_of(entry.config) not in ("onnxruntime", "tensorrt", "pytorch"):
        return
    for index, declared in enumerate(entry.config.get("input", ())):
        if declared.get("allow_ragged_batch"):
            yield Problem(
                tensor=declared.get("name"),
                side="input",
                path=("input", index, "allow_ragged_batch"),
                found="allow_ragged_batch without batch_input",
                expected="the model needs a batch_input that says where each request begins",
                fix="Take allow_ragged_batch out and pad in the caller, or declare batch_input for a model made for it",
            )


@rule(
    "TK635",
    "advice",
    "ragged batch into a Python model",
    why="Requests of different length then arrive in one execute() (BAT-09, seen on 2.51)",
    server="accepts",
)
def ragged_python(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """execute() must not stack what has different lengths."""
    from builder.rules.backends import backend_of

    for index, declared in enumerate(entry.config.get("input", ())):
        if declared.get("allow_ragged_batch") and backend_of(entry.config) == "python":
            yield Problem(
                tensor=declared.get("name"),
                side="input",
                path=("input", index, "allow_ragged_batch"),
                found="allow_ragged_batch on a Python model",
                expected="execute() gets requests of different lengths together",
                fix="Loop over the requests, or pad before stacking",
            )
