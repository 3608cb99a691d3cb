"""What a server's log says about where it put each edge, beside what was predicted.

In: the log of a server that was started with `--log-verbose=1`, and `Edge`s. Out: a `Comparison` for each tensor that
a step made. The server writes `Internal response allocation: <tensor>, size N, addr A, memory type T, type id D` for
each output of each step of an ensemble, by the model's own name of the tensor.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

from builder.datatypes import DATA_TYPES
from builder.handover.edges import Edge
from builder.handover.places import HOST

_LINE = re.compile(
    r"Internal response allocation: (?P<name>.+?), size (?P<size>\d+), addr \S+, "
    r"memory type (?P<type>\d), type id (?P<id>-?\d+)"
)
_FULL = re.compile(r"falling back to (?:pinned|non-pinned) system memory")
_GPU_TYPE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One allocation: bytes, number of the GPU (-1 for the host), and whether the host memory is pinned."""

    name: str
    bytes: int
    place: int
    pinned: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Prediction and log for one output of one step.

    Attributes:
        source, key, tensor: model, its own name for the tensor, the ensemble tensor.
        predicted: GPU, -1 for the host.
        places: where the log saw it, each once.
        smallest, largest: bytes seen.
        times: how often it was seen; 0 if no request went that way.
        verdict: "as predicted", "not seen", "elsewhere", "other size".
        remark: what it means, for a person.
    """

    source: str
    key: str
    tensor: str
    predicted: int
    places: tuple[int, ...]
    smallest: int
    largest: int
    times: int
    verdict: str
    remark: str = ""

    @property
    def is_wrong(self) -> bool:
        """Whether the log contradicts the prediction."""
        return self.verdict in ("elsewhere", "other size")


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """What a log says: every allocation, and whether a CUDA pool was full once."""

    seen: tuple[Seen, ...]
    pool_was_full: bool


def read_placement(log: str) -> Placement:
    """The allocations in a server's log, in order."""
    seen = tuple(
        Seen(
            name=match["name"],
            bytes=int(match["size"]),
            place=int(match["id"]) if int(match["type"]) == _GPU_TYPE else HOST,
            pinned=match["type"] == "1",
        )
        for match in _LINE.finditer(log)
    )
    full = any(_FULL.search(line) and "GPU" in line.upper() for line in log.splitlines())
    return Placement(seen=seen, pool_was_full=full)


def compare(edges: Iterable[Edge], placement: Placement) -> tuple[Comparison, ...]:
    """Prediction beside log, for each output of a step.

    Several models may have outputs of one name; the log does not say whose an allocation is, so where sizes do not
    tell them apart either, each is held against all of them.
    """
    made: dict[tuple[str, str], Edge] = {}
    for edge in edges:
        if edge.source != "caller":
            made.setdefault((edge.source, edge.source_key), edge)
    return tuple(
        _compared(edge, [one for one in placement.seen if one.name == edge.source_key], placement)
        for edge in made.values()
    )


def _compared(edge: Edge, seen: list[Seen], placement: Placement) -> Comparison:
    places = tuple(dict.fromkeys(one.place for one in seen))
    verdict, remark = "as predicted", ""
    exact = _fixed_bytes(edge)
    if not seen:
        verdict, remark = "not seen", "no request made it, or the log is not verbose (--log-verbose=1)"
    elif edge.place not in places or len(places) > 1:
        verdict = "elsewhere"
        remark = _elsewhere(edge, places, placement)
    elif exact and all(one.bytes % exact for one in seen):
        verdict, remark = "other size", f"{exact:,} bytes, or a multiple of it for a batch, follow from type and dims"
    return Comparison(
        source=edge.source,
        key=edge.source_key,
        tensor=edge.tensor,
        predicted=edge.place,
        places=places,
        smallest=min((one.bytes for one in seen), default=0),
        largest=max((one.bytes for one in seen), default=0),
        times=len(seen),
        verdict=verdict,
        remark=remark,
    )


def _elsewhere(edge: Edge, places: tuple[int, ...], placement: Placement) -> str:
    if edge.place != HOST and HOST in places:
        reason = "the log says that the CUDA pool was full" if placement.pool_was_full else "the CUDA pool may be full"
        return f"fell back to the host: {reason}; enlarge it by --cuda-memory-pool-byte-size"
    if edge.place == HOST:
        return "lies on a GPU, where the host was predicted: is this the repository that was planned?"
    return "lies on another GPU than predicted: see gpus in instance_group"


def _fixed_bytes(edge: Edge) -> int:
    """Bytes that follow from type and dims alone; 0 where a size varies."""
    width = DATA_TYPES[edge.data_type].byte_size if edge.data_type in DATA_TYPES else 0
    return 0 if -1 in edge.dims or not edge.dims else prod(edge.dims) * width
