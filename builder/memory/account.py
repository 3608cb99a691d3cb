"""What a memory plan is: the parts of each GPU, what follows from them, and why it does not fit, if it does not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from builder.memory.devices import Gpu

KINDS = ("context", "pool", "weights", "activations", "arena", "graphs", "reserved", "cache")
HEADROOM_PERCENT = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part of a GPU's memory.

    Attributes:
        gpu: the GPU's number.
        owner: the model, or `tritonserver`.
        kind: one of KINDS.
        bytes: how much.
        why: how the number comes about.
        exact: False for an estimate.
    """

    gpu: int
    owner: str
    kind: str
    bytes: int
    why: str
    exact: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuAccount:
    """One GPU: its parts, and what is kept free."""

    index: int
    gpu: Gpu
    parts: tuple[Part, ...]

    @property
    def used(self) -> int:
        """Sum of its parts."""
        return sum(one.bytes for one in self.parts)

    @property
    def usable(self) -> int:
        """What may be used: the total less the headroom."""
        return self.gpu.memory_bytes * (100 - HEADROOM_PERCENT) // 100

    @property
    def over(self) -> int:
        """Bytes too many; 0 or less if it fits."""
        return self.used - self.usable

    def sum_of(self, *kinds: str) -> int:
        """Bytes of the parts of some kinds."""
        return sum(one.bytes for one in self.parts if one.kind in kinds)


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheFit:
    """The KV cache of one language model, on each of its GPUs.

    Attributes:
        model: its name; `architecture`, `storage`, `tensor_parallel`, `pipeline_parallel` for a person.
        bytes: of the cache on each GPU.
        bytes_per_token: of a short sequence, on each GPU.
        blocks, tokens: as vLLM will report them.
        longest: tokens of the longest sequence asked for.
        sequences: by length, how many such sequences fit at once.
    """

    model: str
    architecture: str
    storage: str
    tensor_parallel: int
    pipeline_parallel: int
    bytes: int
    bytes_per_token: int
    blocks: int
    tokens: int
    longest: int
    sequences: Mapping[int, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One thing to set: for which model or program, its name, its value, and why."""

    where: str
    name: str
    value: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """Another plan that fits: what to change, and how full the fullest GPU is then."""

    change: str
    fills: int
    of: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPlan:
    """A plan of the GPUs.

    Attributes:
        accounts: each GPU.
        caches: each language model's cache.
        settings: what follows.
        notes: what was assumed.
        refusals: why it does not fit, each with its sum; empty if it does.
        ways: what would fit instead, the smallest change first; filled only if it does not fit.
    """

    accounts: tuple[GpuAccount, ...]
    caches: tuple[CacheFit, ...]
    settings: tuple[Setting, ...]
    notes: tuple[str, ...]
    refusals: tuple[str, ...] = ()
    ways: tuple[Way, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether it can be run as it is."""
        return not self.refusals
