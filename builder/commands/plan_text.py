"""A memory plan and its edges for a person, in a terminal, or as one JSON object."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from builder.commands.plan_beside import Beside, show_beside
from builder.handover.edges import Edge, by_ensemble, totals
from builder.handover.verify import Comparison
from builder.memory.account import HEADROOM_PERCENT, KINDS, CacheFit, GpuAccount, MemoryPlan
from builder.memory.devices import bytes_text

COLOURS = {
    "context": "grey50",
    "pool": "yellow",
    "weights": "blue",
    "activations": "cyan",
    "arena": "dark_cyan",
    "graphs": "magenta",
    "reserved": "red",
    "cache": "green",
}
MARKS = {"context": "c", "pool": "p", "weights": "W", "activations": "a", "arena": "n", "graphs": "g", "reserved": "r",
         "cache": "K"}  # fmt: skip
HOW_STYLES = {"pointer": "green", "device copy": "green", "gather": "yellow", "upload": "yellow", "peer copy": "yellow",
              "host bounce": "red"}  # fmt: skip
VERBOSE = "Start the server with --log-verbose=1, send requests, and give what it logged."


def as_json(
    memory: MemoryPlan | None,
    edges: Sequence[Edge],
    compared: Sequence[Comparison] | None,
    beside: Beside | None = None,
) -> dict[str, Any]:
    """Everything, as plain values; bytes as numbers."""
    found: dict[str, Any] = {
        "edges": [asdict(one) for one in edges],
        "totals": {name: asdict(totals(mine)) for name, mine in by_ensemble(edges).items()},
    }
    if memory is not None:
        found["memory"] = {
            **asdict(memory),
            "fits": memory.fits,
            "accounts": [{**asdict(one), "used": one.used, "usable": one.usable} for one in memory.accounts],
        }
    if beside is not None:
        found["server"] = beside.as_json()
    if compared is not None:
        found["verify"] = [{**asdict(one), "is_wrong": one.is_wrong} for one in compared]
    return found


def as_env(memory: MemoryPlan) -> str:
    """What docker/compose.yaml takes from a plan: NAME=value lines."""
    found = {one.name: one.value for one in memory.settings if one.where in ("tritonserver", "docker run")}
    pools = [one.value for one in memory.settings if one.name == "--cuda-memory-pool-byte-size"]
    lines = [f"CUDA_POOLS={','.join(pools)}"]
    lines += [f"PINNED_POOL_BYTES={found['--pinned-memory-pool-byte-size']}", f"SHM_SIZE={found['--shm-size']}"]
    return "\n".join(lines) + "\n"


def show(
    memory: MemoryPlan | None,
    edges: Sequence[Edge],
    compared: Sequence[Comparison] | None,
    beside: Beside | None = None,
) -> None:
    """Print results to standard output, refusals and contradictions to standard error."""
    console = Console(highlight=False)
    console = Console(highlight=False, width=max(console.width, 100))
    if memory is not None:
        for account in memory.accounts:
            _show_account(console, account)
        for cache in memory.caches if memory.fits else ():
            _show_cache(console, cache)
        if memory.settings:
            _show_settings(console, memory)
    _show_edges(console, edges)
    if compared is not None:
        _show_compared(console, compared)
    if beside is not None:
        show_beside(console, beside)
    for note in memory.notes if memory else ():
        console.print(Text(f"assumed  {note}", style="dim"), soft_wrap=True)
    if memory is not None:
        show_refusals(memory)


def show_refusals(memory: MemoryPlan) -> None:
    """Print why a plan does not fit, and what would, to standard error; nothing if it does."""
    errors = Console(stderr=True, highlight=False, soft_wrap=True)
    for refusal in memory.refusals:
        errors.print(Text.assemble(("does not fit  ", "bold red"), refusal))
    if memory.refusals:
        errors.print("What would fit:" if memory.ways else "Nothing that was tried would fit.")
        for way in memory.ways:
            errors.print(f"  {way.change} ({bytes_text(way.fills)} of {bytes_text(way.of)})")


def bar(account: GpuAccount, width: int) -> Text:
    """One GPU's memory as a line of `width` signs, each part with its own."""
    text = Text()
    total = max(account.gpu.memory_bytes, account.used)
    done = 0
    for kind in KINDS:
        size = account.sum_of(kind)
        upto = round((done + size) * width / total)
        text.append(MARKS[kind] * (upto - round(done * width / total)), style=f"reverse {COLOURS[kind]}")
        done += size
    text.append("." * (width - len(text)), style="dim")
    return text


def _show_account(console: Console, account: GpuAccount) -> None:
    gpu = account.gpu
    free = gpu.memory_bytes - account.used
    table = Table(
        box=None, title=f"GPU {account.index}: {gpu.name}, {bytes_text(gpu.memory_bytes)}", title_justify="left"
    )
    table.add_column("part")
    table.add_column("of")
    table.add_column("size", justify="right")
    table.add_column("")
    table.add_column("why", style="dim", overflow="fold")
    for part in account.parts:
        mark = Text(f" {MARKS[part.kind]} ", style=f"reverse {COLOURS[part.kind]}")
        name = Text.assemble(mark, " ", part.kind)
        table.add_row(name, part.owner, bytes_text(part.bytes), "" if part.exact else "~", part.why)
    headroom = f"{HEADROOM_PERCENT} % stay free: {bytes_text(gpu.memory_bytes - account.usable)}"
    table.add_row(Text(" .  free"), "", bytes_text(free), "", headroom)
    console.print(table)
    console.print(bar(account, min(console.width, 120) - 2))
    console.print()


def _show_cache(console: Console, cache: CacheFit) -> None:
    ways = [f"TP {cache.tensor_parallel}"] * (cache.tensor_parallel > 1)
    ways += [f"PP {cache.pipeline_parallel}"] * (cache.pipeline_parallel > 1)
    where = " on each GPU" if ways else ""
    console.print(
        f"{cache.model}: {', '.join([cache.architecture, cache.storage, *ways])}; "
        f"KV cache {bytes_text(cache.bytes)}{where}, {bytes_text(cache.bytes_per_token)} a token{where}, "
        f"{cache.blocks:,} blocks, {cache.tokens:,} tokens",
        soft_wrap=True,
    )
    told = ", ".join(f"{count:,.1f} of {length:,} tokens" for length, count in cache.sequences.items())
    console.print(f"  at once: {told}\n", soft_wrap=True)


def _show_settings(console: Console, memory: MemoryPlan) -> None:
    table = Table(box=None, title="What to set", title_justify="left")
    for name in ("where", "setting", "value"):
        table.add_column(name, no_wrap=True)
    table.add_column("why", style="dim", overflow="fold")
    for one in memory.settings:
        table.add_row(one.where, one.name, one.value, one.why)
    console.print(table)
    console.print()


def _show_edges(console: Console, edges: Sequence[Edge]) -> None:
    console.print("How tensors get from step to step, one request", style="italic")
    for name, mine in by_ensemble(edges).items():
        _show_ensemble(console, name, mine)


def _show_ensemble(console: Console, name: str, edges: Sequence[Edge]) -> None:
    """The large edges of one pipeline, each with its reason, and what a request costs there."""
    large = [one for one in edges if one.is_large]
    tensors, ways = _widest(one.tensor for one in large), _widest(f"{one.source} > {one.target}" for one in large)
    for one in large:
        size = bytes_text(one.bytes) + ("?" if one.guessed else "")
        how = Text(f"{one.how:<12}", style=HOW_STYLES.get(one.how, ""))
        way = f"{one.source} > {one.target}"
        line = f" {one.tensor:<{tensors}}  {way:<{ways}}  {size:>10}  {place_text(one.place):<6}  "
        console.print(Text.assemble(line, how), soft_wrap=True)
        for told in filter(None, (one.why, one.better)):
            console.print(Text(f"   {told}", style="dim"), soft_wrap=True)
    small = [one for one in edges if not one.is_large]
    if small:
        console.print(
            f" and {len(small)} small ones, {bytes_text(sum(one.bytes for one in small))} in all", style="dim"
        )
    sum_ = totals(edges)
    console.print(
        f"{name}: one request moves {bytes_text(sum_.moved)}, copies {bytes_text(sum_.copied)}, "
        f"{bytes_text(sum_.crossed)} of it over the bus"
    )


def _widest(texts: Iterable[str]) -> int:
    return max((len(text) for text in texts), default=0)


def _show_compared(console: Console, compared: Sequence[Comparison]) -> None:
    table = Table(box=None, title="\nBeside the server's log", title_justify="left")
    for name in ("tensor", "made by", "predicted", "seen", "times", "bytes", "verdict"):
        table.add_column(name, no_wrap=True)
    for one in compared:
        style = "red" if one.is_wrong else "" if one.times else "dim"
        sizes = f"{one.smallest:,}" if one.smallest == one.largest else f"{one.smallest:,} to {one.largest:,}"
        table.add_row(
            one.tensor,
            f"{one.source}, {one.key}",
            place_text(one.predicted),
            _places(one),
            str(one.times),
            sizes,
            Text(one.verdict, style=style),
        )
    Console(highlight=False, width=max(console.width, 120)).print(table)
    errors = Console(stderr=True, highlight=False, soft_wrap=True)
    if not any(one.times for one in compared):
        errors.print(f"the log tells of none of these tensors. {VERBOSE}")
    for one in compared:
        if one.is_wrong:
            errors.print(
                f"{one.tensor} ({one.source}, {one.key}): {one.verdict}: predicted on {place_text(one.predicted)}, "
                f"seen on {_places(one)}: {one.remark}"
            )


def _places(one: Comparison) -> str:
    return ", ".join(place_text(place) for place in one.places)


def place_text(place: int) -> str:
    """`host`, or `GPU 0`."""
    return "host" if place < 0 else f"GPU {place}"
