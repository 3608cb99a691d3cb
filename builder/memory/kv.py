"""The KV cache: bytes per token, blocks in a budget, and how many sequences of what length fit at once.

In: a `Network` and a few of the engine's arguments. Out: a `Cache`. The arithmetic is vLLM's own (engine v1): layers
that look back alike form groups of one size, all groups draw blocks of one size from one pool.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from builder.memory.network import Attention, Network

GPU_BLOCK = 16
_CACHE_BYTES = {"auto": 0, "bfloat16": 2, "float16": 2, "fp8": 1, "fp8_e4m3": 1, "fp8_e5m2": 1, "fp8_inc": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Layers that share block tables: how many, tokens in one of their blocks, how far back they look."""

    layers: int
    block_tokens: int
    window: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cache:
    """The KV cache of one GPU.

    Attributes:
        groups: its groups of layers; one for most networks.
        block_bytes: bytes that one block takes on one GPU.
        bytes_per_token: what a token of a short sequence takes on one GPU.
        batched_tokens: tokens that one step of the engine computes at most.
    """

    groups: tuple[Group, ...]
    block_bytes: int
    bytes_per_token: int
    batched_tokens: int

    def blocks(self, budget_bytes: int) -> int:
        """Blocks that fit a budget."""
        return budget_bytes // self.block_bytes

    def blocks_of(self, tokens: int) -> int:
        """Blocks that one sequence of this length takes."""
        return sum(self._blocks_in(group, tokens) for group in self.groups)

    def bytes_of(self, tokens: int) -> int:
        """Bytes that one sequence of this length takes."""
        return self.blocks_of(tokens) * self.block_bytes

    def sequences(self, budget_bytes: int, tokens: int) -> float:
        """How many sequences of this length fit at once; vLLM's `maximum concurrency`."""
        return self.blocks(budget_bytes) / self.blocks_of(tokens)

    def tokens(self, budget_bytes: int, longest: int) -> int:
        """Tokens that fit, as vLLM reports its `KV cache size`: in sequences of the longest length."""
        return int(self.sequences(budget_bytes, longest) * longest)

    def _blocks_in(self, group: Group, tokens: int) -> int:
        if group.window is None:
            return -(-tokens // group.block_tokens)
        kept = min(group.window - 1 + self.batched_tokens, tokens)
        return -(-kept // group.block_tokens) + 1


def cache_of(
    network: Network,
    *,
    dtype_bytes: int,
    cache_dtype: str = "auto",
    block_tokens: int = GPU_BLOCK,
    batched_tokens: int = 8192,
    tensor_parallel: int = 1,
    pipeline_parallel: int = 1,
) -> Cache:
    """The cache on the GPU that holds most layers.

    Args:
        dtype_bytes: bytes of the engine's own type, what `cache_dtype` "auto" means.
        cache_dtype: the engine's `kv_cache_dtype`.
        block_tokens: the engine's `block_size`.
    """
    each = element_bytes(cache_dtype, dtype_bytes)
    on_rank = network.attention[: -(-len(network.attention) // pipeline_parallel)]
    pages = [_page(one, each, block_tokens, tensor_parallel) for one in on_rank]
    groups, block_bytes = _grouped(list(zip(on_rank, pages, strict=True)), block_tokens)
    return Cache(
        groups=groups,
        block_bytes=block_bytes,
        bytes_per_token=sum(pages) // block_tokens,
        batched_tokens=batched_tokens,
    )


def element_bytes(cache_dtype: str, dtype_bytes: int) -> int:
    """Bytes of one element of the cache."""
    return _CACHE_BYTES.get(cache_dtype, 0) or dtype_bytes


def _page(one: Attention, each: int, block_tokens: int, tensor_parallel: int) -> int:
    heads = one.heads if one.latent else max(1, one.heads // tensor_parallel)
    return heads * one.width * each * block_tokens


def _grouped(layers: Sequence[tuple[Attention, int]], block_tokens: int) -> tuple[tuple[Group, ...], int]:
    """Groups, and bytes of a block: the layers of the largest group, one page each."""
    windows = {one.window for one, _ in layers}
    if len(windows) == 1:
        group = Group(layers=len(layers), block_tokens=block_tokens, window=windows.pop())
        return (group,), sum(page for _, page in layers)
    page = max(page for _, page in layers)
    kinds = Counter(
        (one.window, block_tokens * page // own if page % own == 0 else block_tokens) for one, own in layers
    )
    fewest, most = min(kinds.values()), max(kinds.values())
    size = most if most < 1.5 * fewest else fewest
    groups = [
        Group(layers=size, block_tokens=tokens, window=window)
        for (window, tokens), count in kinds.items()
        for _ in range(-(-count // size))
    ]
    return tuple(groups), size * page
