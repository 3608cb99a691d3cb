"""Every edge of an ensemble: bytes per request, where the tensor lies, which copies it costs, why, and what would help.

In: an ensemble, the catalog of a profile, usual sizes. Out: `Edge`s. The hop inside the ensemble itself never copies:
consumer and producer see one buffer. Copies are the backends', and are counted here one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from builder.catalog import Catalog, Entry
from builder.graph import EnsembleTensor, make_graph
from builder.handover.places import CALLER, DEVICE_OUTPUTS, FORCE, HOST, Abode, abode_of
from builder.handover.sizes import Sizes
from builder.tensors import dims_text

How = Literal["pointer", "device copy", "gather", "upload", "host bounce", "peer copy", "host copy"]
LARGE_BYTES = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """One ensemble tensor on its way to one of its users.

    Attributes:
        ensemble: the pipeline's own.
        tensor: the ensemble tensor.
        source, source_key: the model that makes it and its own name for it; `caller` and the tensor's name at an end.
        target, target_key: the same of the model that reads it.
        data_type, dims: as the producer declares them.
        bytes: of a usual request; `guessed` where a size that varies had to be taken as 1.
        place: number of the GPU whose memory it lies in between the two; -1 for the host's.
        how: what becomes of it on its way, the most expensive part.
        copies: how many times its bytes are copied, all told; `crossings`: how many of these go over the bus.
        why: the reason.
        better: the change that would improve it; empty where there is none.
    """

    ensemble: str
    tensor: str
    source: str
    source_key: str
    target: str
    target_key: str
    data_type: str
    dims: tuple[int, ...]
    bytes: int
    guessed: bool
    place: int
    how: How
    copies: int
    crossings: int
    why: str
    better: str = ""

    @property
    def is_large(self) -> bool:
        """Whether its copies are worth a thought."""
        return self.bytes >= LARGE_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Sums over the edges of one request, in bytes."""

    moved: int
    copied: int
    crossed: int
    by_how: Mapping[str, int]


def totals(edges: Iterable[Edge]) -> Totals:
    """What one request costs."""
    found = list(edges)
    by_how: dict[str, int] = {}
    for one in found:
        by_how[one.how] = by_how.get(one.how, 0) + one.bytes
    return Totals(
        moved=sum(one.bytes for one in found),
        copied=sum(one.bytes * one.copies for one in found),
        crossed=sum(one.bytes * one.crossings for one in found),
        by_how=by_how,
    )


def by_ensemble(edges: Iterable[Edge]) -> Mapping[str, tuple[Edge, ...]]:
    """The edges of each pipeline: a request goes through one of them."""
    found: dict[str, tuple[Edge, ...]] = {}
    for one in edges:
        found[one.ensemble] = (*found.get(one.ensemble, ()), one)
    return found


def edges_of(
    ensemble: Entry,
    catalog: Catalog,
    sizes: Sizes,
    *,
    pool_bytes: Mapping[int, int] | None = None,
    concurrency: int = 1,
    embedded: bool = False,
) -> tuple[Edge, ...]:
    """The edges of an ensemble in the order of its steps.

    Args:
        pool_bytes: Triton's CUDA pool by GPU, where it is known; what does not fit falls back to the host.
        concurrency: requests that are under way at once, for the pool.
        embedded: for the embedded server, whose ONNX backend is a Python one.
    """
    found = [
        edge
        for tensor in make_graph(ensemble).tensors.values()
        for edge in _edges(ensemble.name, tensor, catalog, sizes, embedded)
    ]
    order = {step.get("model_name"): index for index, step in enumerate(ensemble.ensemble_steps())}
    found.sort(key=lambda one: (order.get(one.target, len(order)), order.get(one.source, -1)))
    return tuple(_without_room(found, pool_bytes or {}, concurrency))


def _edges(ensemble: str, tensor: EnsembleTensor, catalog: Catalog, sizes: Sizes, embedded: bool) -> Iterator[Edge]:
    makers = [(end.model, end.key) for end in tensor.makers] or [("caller", tensor.name)]
    users = [(end.model, end.key) for end in tensor.users]
    ends = [
        (model, catalog.entries[model].tensors(side)[key])
        for side, pairs in (("output", makers), ("input", users))
        for model, key in pairs
        if model in catalog.entries and key in catalog.entries[model].tensors(side)
    ]
    if not ends:
        return
    size, declared = sizes.best(ends), ends[0][1]
    source, source_key = makers[0]
    for target, target_key in [*users, *([("caller", tensor.name)] if tensor.is_output else [])]:
        left, right = _abode(source, catalog, embedded), _abode(target, catalog, embedded)
        left = left if left.leaves_on_device(source_key) else replace(left, gives_device=False)
        place, how, copies, crossings, why, better = _way(left, right, declared, source, target)
        yield Edge(
            ensemble=ensemble,
            tensor=tensor.name,
            source=source,
            source_key=source_key,
            target=target,
            target_key=target_key,
            data_type=str(declared.get("data_type", "?")),
            dims=tuple(declared.get("dims", ())),
            bytes=size.bytes,
            guessed=size.guessed,
            place=place,
            how=how,
            copies=copies,
            crossings=crossings,
            why=why,
            better=better,
        )


def _abode(model: str, catalog: Catalog, embedded: bool) -> Abode:
    entry = catalog.entries.get(model)
    return CALLER if entry is None else abode_of(entry, embedded=embedded, devices=int(catalog.profile == "gpu"))


Way = tuple[int, How, int, int, str, str]


def _way(left: Abode, right: Abode, declared: Mapping[str, Any], source: str, target: str) -> Way:
    """(place, how, copies, copies over the bus, why, what would help) of an edge between two abodes."""
    if declared.get("data_type") == "TYPE_STRING":
        why = f"strings {dims_text(declared.get('dims', ()))} live on the host, each with its length in front"
        return HOST, "host copy", _host_copies(left, right), 0, why, ""
    if left.gives_device:
        return _from_device(left, right, source, target)
    if right.takes_device and not right.process:
        return _to_device(left, right, source, target)
    if not left.process and not right.process and right is not CALLER:
        return HOST, "pointer", 0, 0, "both ends are inside the server, on the host", ""
    why = "through shared memory to the model's process" if right.process else "into the answer"
    return HOST, "host copy", _host_copies(left, right), 0, why, ""


def _from_device(left: Abode, right: Abode, source: str, target: str) -> Way:
    out = 1  # the backend's own output into the buffer of the response
    if right is CALLER:
        return left.gpu, "host bounce", out + 1, 1, "the answer to the caller is on the host", ""
    if not right.takes_device:
        return left.gpu, "host bounce", out + 1, 1, *_why_not(right, target)
    if right.gpu != left.gpu:
        why = f"{source} is on GPU {left.gpu}, {target} on GPU {right.gpu}"
        return left.gpu, "peer copy", out + 1, 1, why, f"Put both on one GPU: the same number in gpus of {target}"
    if right.process:
        why = "stays on the GPU; the model's process gets a copy on the device"
        return left.gpu, "device copy", out + 1, 0, why, ""
    if right.batches:
        why = "stays on the GPU; read in place when it is alone in a batch, gathered into one buffer with others"
        return left.gpu, "gather", out + 1, 0, why, ""
    return left.gpu, "device copy", out, 0, "stays on the GPU; the reader takes it in place", ""


def _why_not(right: Abode, target: str) -> tuple[str, str]:
    if right.gpu == HOST:
        return f"{target} runs on the host", f"Give {target} an instance on the GPU, and code that reads DLPack tensors"
    why = f"{target} has an instance on the GPU, but the Python backend hands it host memory unless told otherwise"
    return why, f'Set {FORCE} to "no" in parameters of {target}, and read the tensor by DLPack'


def _to_device(left: Abode, right: Abode, source: str, target: str) -> Way:
    copies = (2 if left.process else 0) + 1
    origin = "the caller sends it from" if left is CALLER else f"{source} makes it on"
    why = f"{origin} the host, {target} reads it on GPU {right.gpu}"
    better = (
        "Send it in CUDA shared memory, where the caller is on this machine"
        if left is CALLER
        else f"Make it on the GPU: an instance of {source} there, its output by DLPack and named in {DEVICE_OUTPUTS}"
    )
    return HOST, "upload", copies, 1, why, better


def _host_copies(left: Abode, right: Abode) -> int:
    """Copies on the host: out of a model's process into shared memory and the response, into that of the reader."""
    return (2 if left.process else 0) + (1 if right.process or right is CALLER else 0)


def _without_room(found: Iterable[Edge], pool_bytes: Mapping[int, int], concurrency: int) -> Iterator[Edge]:
    """The edges, those that do not fit the pool any more as host bounces. Fan-out shares one buffer."""
    left = dict(pool_bytes)
    placed: dict[str, bool] = {}
    for one in found:
        if one.place == HOST or one.place not in left:
            yield one
            continue
        if one.tensor not in placed:
            need = one.bytes * concurrency
            placed[one.tensor] = need <= left[one.place]
            left[one.place] -= need if placed[one.tensor] else 0
        if placed[one.tensor]:
            yield one
            continue
        yield replace(
            one,
            how="host bounce",
            crossings=2,
            copies=one.copies + 1,
            place=HOST,
            why=f"the CUDA pool of GPU {one.place} is full: {concurrency} requests at once need more than it has",
            better="Enlarge the pool: --cuda-memory-pool-byte-size, as `tritonkit plan` works it out",
        )
