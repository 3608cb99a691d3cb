"""A running server beside a plan, for a person and for machines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from builder.catalog import Catalog
from builder.commands.plan_server import Answer
from builder.handover.running import Difference, differences
from builder.memory.account import MemoryPlan
from builder.memory.devices import bytes_text
from builder.memory.measured import Measured

NOT_TOLD = (
    "Where tensors lie between the steps, and whether the CUDA pool was full, no endpoint tells: start the server with "
    "--log-verbose=1 (or switch it on: POST /v2/logging with log_verbose_level 1), send requests, and give its log: "
    "--verify LOG"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What a server says beside a plan.

    Attributes:
        version: the server's; `planned_version` that of the release that was planned for.
        differences: what it does otherwise.
        measured: what its processes take, where that can be seen.
        used: bytes in use on its GPUs, by its metrics; `planned` the plan's sum.
        pinned: bytes of its pinned pool; `planned_pinned` the plan's.
    """

    version: str
    planned_version: str
    differences: tuple[Difference, ...]
    measured: tuple[Measured, ...]
    used: int | None
    planned: int | None
    pinned: int | None
    planned_pinned: int | None

    @property
    def is_wrong(self) -> bool:
        """Whether the server contradicts the plan."""
        return bool(self.differences) or any(one.is_far for one in self.measured)

    def as_json(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {**asdict(self), "is_wrong": self.is_wrong, "not_told": NOT_TOLD}


def beside_plan(answer: Answer, catalog: Catalog, memory: MemoryPlan | None, measured: Sequence[Measured]) -> Beside:
    """A server's answer beside a plan."""
    settings = {one.name: one.value for one in memory.settings} if memory else {}
    pinned = settings.get("--pinned-memory-pool-byte-size")
    return Beside(
        version=answer.version,
        planned_version=".".join(str(part) for part in catalog.target.triton),
        differences=differences(catalog, answer.configs),
        measured=tuple(measured),
        used=answer.used,
        planned=sum(one.used for one in memory.accounts) if memory else None,
        pinned=answer.pinned,
        planned_pinned=int(pinned) if pinned else None,
    )


def show_beside(console: Console, beside: Beside) -> None:
    """Print what agrees and how much is taken to standard output, what contradicts the plan to standard error."""
    console.print(f"\nBeside the server: Triton {beside.version}, planned for {beside.planned_version}", style="italic")
    if beside.used is not None and beside.planned is not None:
        console.print(f" in use on its GPUs: {bytes_text(beside.used)}, planned {bytes_text(beside.planned)}")
    if beside.pinned is not None and beside.planned_pinned is not None:
        console.print(f" pinned pool: {bytes_text(beside.pinned)}, planned {bytes_text(beside.planned_pinned)}")
    if beside.measured:
        table = Table(box=None)
        for name in ("GPU", "process of", "planned", "found"):
            table.add_column(name)
        for one in beside.measured:
            style = "red" if one.is_far else ""
            table.add_row(str(one.gpu), one.owner, bytes_text(one.planned), bytes_text(one.found), style=style)
        console.print(table)
    if not beside.differences:
        console.print(" every model is ready, with what was planned for it")
    errors = Console(stderr=True, highlight=False, soft_wrap=True)
    for told in beside.differences:
        errors.print(f"{told.model}: {told.what} is {told.found or 'not set'}, planned {told.planned or 'not set'}")
    for far in (one for one in beside.measured if one.is_far):
        errors.print(f"GPU {far.gpu}, {far.owner}: takes {bytes_text(far.found)}, planned {bytes_text(far.planned)}")
    console.print(f" {NOT_TOLD}", style="dim", soft_wrap=True)
