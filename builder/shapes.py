"""What can meet at a request and not fit, though the server loads the ensemble: sizes that vary, batches, rows.

In: an ensemble and the catalog. Out: `Doubt`s. The server compares an edge's two ends with every -1 as a match, and
converts between batched and unbatched ends at each request; here the same is done with what is known
beforehand: a batch is 1, the caller's, or the rows of some tensor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from builder.catalog import Catalog, Entry
from builder.graph import make_graph, ordered
from builder.tensors import dims_agree

# A batch: a number, "caller", or the name of the tensor whose rows it is.
Batch = int | str
CALLER = "caller"


@dataclass(frozen=True, slots=True, kw_only=True)
class Flowing:
    """An ensemble tensor on its way: dims without the batch, and the batch (None: it has none)."""

    dims: tuple[int, ...]
    batch: Batch | None
    maker: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """Something that does not fit at some requests.

    Attributes:
        kind: "size" that varies into a fixed one; a "batch" into a model that takes one or a fixed number; more "rows"
            than a model's max_batch_size; inputs of one step with different "batches".
        found: the batch or the dims that come, `wanted` those that fit.
    """

    kind: Literal["size", "batch", "rows", "batches"]
    step: int
    model: str
    key: str
    tensor: str
    found: Any
    wanted: Any


def doubts(ensemble: Entry, catalog: Catalog) -> tuple[Doubt, ...]:
    """Every doubt about an ensemble's edges, in order of steps."""
    flowing = {name: _from_caller(declared, ensemble) for name, declared in ensemble.tensors("input").items()}
    found: list[Doubt] = []
    graph = make_graph(ensemble)
    feeds = [graph.feeding(index) for index in range(len(graph.steps))]
    order, _ = ordered(feeds, list(range(len(feeds))))
    for index in order:
        step = graph.steps[index]
        model = catalog.entries.get(step.get("model_name", ""))
        if model is None:
            continue
        batch = _step_batch(index, step, model, flowing, found)
        for key, declared in model.tensors("output").items():
            name = step.get("output_map", {}).get(key)
            if name is not None and name not in flowing:
                dims = tuple(declared.get("dims", ()))
                flowing[name] = Flowing(dims=dims, batch=batch if model.is_batching else None, maker=model.name)
    return tuple(sorted(found, key=lambda one: one.step))


def _from_caller(declared: Mapping[str, Any], ensemble: Entry) -> Flowing:
    dims = declared["reshape"].get("shape", ()) if "reshape" in declared else declared.get("dims", ())
    most = ensemble.config.get("max_batch_size", 0)
    return Flowing(dims=tuple(dims), batch=None if most < 1 else 1 if most == 1 else CALLER, maker=ensemble.name)


def _step_batch(
    index: int, step: Mapping[str, Any], model: Entry, flowing: Mapping[str, Flowing], found: list[Doubt]
) -> Batch:
    """The batch that a step runs with; doubts about its inputs are added to `found`."""
    batches: dict[Batch, str] = {}
    for key, declared in model.tensors("input").items():
        name = step.get("input_map", {}).get(key)
        tensor = flowing.get(name) if name is not None else None
        if name is None or tensor is None:
            continue
        wanted = tuple(declared.get("dims", ()))
        batch, come = _converted(tensor, wanted, model, name)
        place = {"step": index, "model": model.name, "key": key, "tensor": name}
        if len(come) == len(wanted) and any(have == -1 != want for have, want in zip(come, wanted, strict=True)):
            found.append(Doubt(kind="size", found=come, wanted=wanted, **place))
        if not model.is_batching and batch is not None and batch != 1:
            found.append(Doubt(kind="batch", found=batch, wanted=1, **place))
        elif (
            not model.is_batching
            and tensor.batch is not None
            and batch is None
            and wanted
            and wanted[0] not in (-1, tensor.batch)
        ):
            found.append(Doubt(kind="batch", found=tensor.batch, wanted=wanted[0], **place))
        if model.is_batching and batch is not None:
            batches.setdefault(batch, key)
            if _is_beyond(batch, model):
                found.append(Doubt(kind="rows", found=batch, wanted=model.config["max_batch_size"], **place))
    if len(batches) > 1:
        keys = list(batches.values())
        where = {"step": index, "model": model.name, "key": keys[1], "tensor": step["input_map"][keys[1]]}
        found.append(Doubt(kind="batches", found=tuple(batches), wanted=keys[0], **where))
    return next(iter(batches), 1)


def _converted(
    tensor: Flowing, wanted: tuple[int, ...], model: Entry, name: str
) -> tuple[Batch | None, tuple[int, ...]]:
    """The batch and the dims with which a tensor reaches an input, after the server's conversion."""
    if tensor.batch is None:
        if model.is_batching and dims_agree(tensor.dims, wanted):
            return 1, tensor.dims
        if model.is_batching and len(tensor.dims) == len(wanted) + 1:
            first = tensor.dims[0]
            return (name if first == -1 else first), tensor.dims[1:]
        return 1 if model.is_batching else None, tensor.dims
    if model.is_batching:
        return tensor.batch, tensor.dims
    if len(tensor.dims) == len(wanted):
        return tensor.batch, tensor.dims
    first = tensor.batch if isinstance(tensor.batch, int) else wanted[0] if wanted else -1
    return None, (first, *tensor.dims)


def _is_beyond(batch: Batch, model: Entry) -> bool:
    most = model.config["max_batch_size"]
    return batch > most if isinstance(batch, int) else batch != CALLER
