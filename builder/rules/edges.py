"""Rules about the two ends of every edge: data types, dims, batches.

The server holds every end against the first one it met: the ensemble's own inputs and outputs, then the steps in the
order of the file. So do these rules, so that the verdict is the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from builder.catalog import Catalog, Entry
from builder.findings import Problem, rule
from builder.tensors import dims_agree, dims_text, ends_agree, full_dims

_WHY = "core: ensemble_utils.cc, ValidateTensorConsistency"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One end of an edge with its type and dims, as the server sees them."""

    model: str
    key: str
    side: str
    data_type: str | None
    dims: tuple[int, ...]
    batching: bool
    step: int | None
    made: bool
    reshape: tuple[int, ...] | None = None

    @property
    def has_dims(self) -> bool:
        """Whether dims were given at all; the ensemble's own may be reshaped to none."""
        return bool(self.dims) or (self.step is None and self.reshape is not None)


def ends(entry: Entry, catalog: Catalog) -> dict[str, list[Seen]]:
    """For each ensemble tensor its ends, in the order in which the server meets them."""
    found: dict[str, list[Seen]] = {}
    for side in ("input", "output"):
        for name, declared in entry.tensors(side).items():
            if name in found:
                continue  # an output named as an input: the server compares the input only
            reshape = tuple(declared["reshape"].get("shape", ())) if "reshape" in declared else None
            found.setdefault(name, []).append(
                Seen(
                    model=entry.name,
                    key=name,
                    side=side,
                    data_type=declared.get("data_type"),
                    dims=tuple(declared.get("dims", ())) if reshape is None else reshape,
                    batching=entry.is_batching,
                    step=None,
                    made=side == "input",
                    reshape=reshape,
                )
            )
    for index, step in enumerate(entry.ensemble_steps()):
        model = catalog.entries.get(step.get("model_name", ""))
        if model is None:
            continue
        for side in ("input", "output"):
            mapped = step.get(f"{side}_map", {})
            for declared in model.config.get(side, ()):  # also the second one of a name
                key = declared.get("name", "")
                if key in mapped:
                    found.setdefault(mapped[key], []).append(_step_end(model, key, side, declared, index))
    return found


def _step_end(model: Entry, key: str, side: str, declared: Any, index: int) -> Seen:
    return Seen(
        model=model.name,
        key=key,
        side=side,
        data_type=declared.get("data_type"),
        dims=tuple(declared.get("dims", ())),
        batching=model.is_batching,
        step=index,
        made=side == "output",
        reshape=tuple(declared["reshape"].get("shape", ())) if "reshape" in declared else None,
    )


@rule("TK401", "error", "two data types on one edge", why=_WHY)
def data_types(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """Ends of one tensor with different data types."""
    for tensor, all_ends in ends(entry, catalog).items():
        typed = [end for end in all_ends if end.data_type is not None]
        for end in typed[1:]:
            first = typed[0]
            if end.data_type == first.data_type:
                continue
            here, other = _reader_first(end, first)
            yield Problem(
                **_place(here, tensor, entry),
                found=f"{tensor} is {other.data_type} from {other.model}",
                expected=f"{here.data_type} is {'needed' if not here.made else 'what it makes'}",
                fix="Map another tensor or add a step that converts",
            )


@rule("TK402", "error", "dims that do not agree on one edge", why=_WHY)
def dims(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """Ends of one tensor with different dims, with and without the batch in front."""
    for tensor, all_ends in ends(entry, catalog).items():
        known = [end for end in all_ends if end.has_dims]
        for end in known[1:]:
            first = known[0]
            if ends_agree(first.dims, first.batching, end.dims, end.batching):
                continue
            here, other = _reader_first(end, first)
            yield Problem(
                **_place(here, tensor, entry),
                found=f"{tensor} is {_shape(other)} from {other.model}",
                expected=f"{_shape(here)} is {'needed' if not here.made else 'what it makes'}",
                fix=_fix(here, other),
            )


def _fix(here: Seen, other: Seen) -> str:
    """What to write: a reshape on the end with the longer or shorter form, where that is all it takes."""
    if here.reshape is not None or other.reshape is not None:
        end = here if here.reshape is not None else other
        if end.step is None:
            return f"Take the reshape off {end.model}; on the model of the step it is allowed"
        return (
            f"Dims are compared, not what reshape makes of them: write {end.model}'s dims as the other end has them, "
            "and reshape to what the model itself wants"
        )
    with_one = (1, *other.dims)
    if here.dims[:1] == (1,) and dims_agree(with_one, here.dims) and here.step is not None:
        return (
            f"On {here.model} write dims: {dims_text(other.dims)} reshape {{ shape: {dims_text(here.dims)} }}; "
            "a reshape on the maker would not help, dims are what is compared"
        )
    if other.dims[:1] == (1,) and dims_agree((1, *here.dims), other.dims) and other.step is not None:
        return f"On {other.model} write dims: {dims_text(here.dims)} reshape {{ shape: {dims_text(other.dims)} }}"
    return "Map another tensor, correct the dims that are wrong, or add a step that converts"


@rule(
    "TK403",
    "error",
    "step that takes smaller batches than its ensemble",
    why="core: ensemble allows maximum batch size N, but it contains model M",
)
def batch_size(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """A batching step whose max_batch_size is below the ensemble's."""
    most = entry.config.get("max_batch_size", 0)
    for index, step in enumerate(entry.ensemble_steps()):
        model = catalog.entries.get(step.get("model_name", ""))
        size = model.config.get("max_batch_size", 0) if model is not None else 0
        if model is not None and 0 < size < most:
            yield Problem(
                step=index,
                path=("max_batch_size",),
                found=f"{entry.name} takes batches of {most}, {model.name} of {size} at most",
                expected=f"at most {size} is needed, or 0",
                fix=f"Write max_batch_size: {size} on the ensemble, or raise it on {model.name}",
            )


def _reader_first(end: Seen, first: Seen) -> tuple[Seen, Seen]:
    """The end to speak of, and the other: a step before the ensemble itself, a reader before the maker."""
    if end.step is None or (first.step is not None and end.made and not first.made):
        return first, end
    return end, first


def _place(end: Seen, tensor: str, entry: Entry) -> dict[str, Any]:
    path = (
        ("ensemble_scheduling", "step", end.step, f"{end.side}_map", end.key)
        if end.step is not None
        else (end.side, list(entry.tensors(end.side)).index(tensor))
    )
    return {"step": end.step, "tensor": end.key, "side": end.side, "path": path}


def _shape(end: Seen) -> str:
    text = dims_text(end.dims)
    return f"{text} with a batch in front {dims_text(full_dims(end.dims, batching=True))}" if end.batching else text
