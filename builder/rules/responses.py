"""Rules about how many responses a tensor comes in, and about tensors that may not come at all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from builder.catalog import Catalog, Entry
from builder.decoupling import CALLER, is_decoupled, labels
from builder.findings import Problem, rule

_WHY = "core: step of model X receives inputs originated from different decoupled models"


@rule("TK501", "error", "tensors from before and after a decoupled step meet in a step", why=_WHY)
def mixed_inputs(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """One answer cannot be paired with many, so a step may read tensors of one decoupled step only."""
    found = labels(entry, catalog.entries)
    for index, step in enumerate(entry.ensemble_steps()):
        read = {name: found.get(name, CALLER) for name in step.get("input_map", {}).values() if name in found}
        if len(set(read.values())) > 1:
            yield Problem(
                step=index,
                path=("ensemble_scheduling", "step", index, "input_map"),
                found=f"it reads {_told(read, entry)}",
                expected="tensors that all descend from the same decoupled step, or all from none, are needed",
                fix=_rewrite(read, entry),
            )


@rule("TK502", "error", "ensemble returns tensors from before and after a decoupled step", why=_WHY)
def mixed_outputs(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """The ensemble's own outputs must descend from one decoupled step, too."""
    found = labels(entry, catalog.entries)
    returned = {name: found[name] for name in entry.tensors("output") if name in found}
    if len(set(returned.values())) > 1:
        yield Problem(
            path=("output",),
            found=f"it returns {_told(returned, entry)}",
            expected="outputs that all descend from the same decoupled step, or all from none, are needed",
            fix=_rewrite(returned, entry),
        )


@rule(
    "TK503",
    "warning",
    "optional input of the ensemble into an input that a model needs",
    why="The server loads it; a request without the input fails: expected N inputs but got M",
    server="accepts",
)
def optional_into_required(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """An ensemble input that may be left out, read by a step that cannot do without it."""
    optional = {name for name, declared in entry.tensors("input").items() if declared.get("optional")}
    for index, step in enumerate(entry.ensemble_steps()):
        model = catalog.entries.get(step.get("model_name", ""))
        known = model.tensors("input") if model is not None else {}
        for key, name in step.get("input_map", {}).items():
            if model is not None and name in optional and key in known and not known[key].get("optional"):
                yield Problem(
                    step=index,
                    tensor=key,
                    side="input",
                    path=("ensemble_scheduling", "step", index, "input_map", key),
                    found=f"{name} may be left out, and {model.name} cannot do without {key}",
                    expected="an input that is always sent, or one that the model can miss, is needed",
                    fix=f"Take optional off {name}, declare {key} optional in {model.name} if it can do without, or "
                    f"serve a second ensemble without {name}",
                )


@rule(
    "TK504",
    "advice",
    "ensemble that is decoupled through a step, and does not say so",
    why="server: ModelInfer RPC doesn't support models with decoupled transaction policy; HTTP answers 501 (ENS-15)",
    server="accepts",
)
def decoupled_unsaid(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """The server finds it out from the steps; whoever reads the config, or writes a client, does not."""
    if entry.is_decoupled:
        return
    for index, step in enumerate(entry.ensemble_steps()):
        if is_decoupled(step.get("model_name", ""), catalog.entries, (entry.name,)):
            yield Problem(
                step=index,
                path=("ensemble_scheduling", "step", index, "model_name"),
                found=f"{entry.name} is decoupled because of step {_number(entry, index)}",
                expected="callers that take several responses are needed, a plain infer is refused",
                fix="Call it by gRPC streaming, or by generate and generate_stream over HTTP; write "
                "model_transaction_policy { decoupled: true } here, so that readers know",
            )
            return


def _told(tensors: Mapping[str, int], entry: Entry) -> str:
    groups: dict[int, list[str]] = {}
    for name, label in tensors.items():
        groups.setdefault(label, []).append(name)
    told = []
    for label in sorted(groups, key=lambda label: label if label == CALLER else entry.step_number(label)):
        of = "no decoupled step" if label == CALLER else f"decoupled step {_number(entry, label)}"
        told.append(f"{', '.join(groups[label])} ({of})")
    return " and ".join(told)


def _number(entry: Entry, index: int) -> str:
    return f"{entry.step_number(index)} ({entry.step_model(index)})"


def _rewrite(tensors: Mapping[str, int], entry: Entry) -> str:
    last = max(tensors.values())
    if len({label for label in tensors.values() if label != CALLER}) > 1:
        return (
            "Let one decoupled step feed the other and pass its tensors through it, or gather the whole answer of one "
            "of them in a step that calls it itself (BLS)"
        )
    others = [name for name, label in tensors.items() if label != last]
    return (
        f"Pass {', '.join(others)} through {entry.step_model(last)} as further inputs and outputs "
        f"(its first response can carry them), or leave {'it' if len(others) == 1 else 'them'} out"
    )
