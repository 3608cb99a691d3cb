"""What takes a GPU's memory while a server runs, beside what was planned.

In: what `nvidia-smi` lists for each process, and the processes of the machine. Out: `Measured`, one for each process of
a server: its own, and one for each Python model, with all processes below it. What the server's own backends take
(ONNX Runtime, TensorRT) is one number there, so it is held against the sum of their parts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from builder.memory.account import GpuAccount
from builder.memory.devices import MIB

QUERY = ("nvidia-smi", "--query-compute-apps=gpu_uuid,pid,used_memory", "--format=csv,noheader,nounits")
GPUS = ("nvidia-smi", "--query-gpu=index,uuid", "--format=csv,noheader")
SERVER = "tritonserver"
# How far a process may be from its plan: contexts, activations and graphs are estimates.
TOLERANCE = 0.25
_STUB = re.compile(r"triton_python_backend_stub\S*\s+\S*?/([^/\s]+)/\d+/[^/\s]+\.py(?:\s|$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process of the machine: its parent's number, and its command line."""

    parent: int
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One process of the server on one GPU: bytes planned, bytes found; `owner` is a model, or `tritonserver`."""

    gpu: int
    owner: str
    planned: int
    found: int

    @property
    def is_far(self) -> bool:
        """Whether it takes more than planned, or much less."""
        return abs(self.found - self.planned) > TOLERANCE * max(self.planned, 256 * MIB)


def measured(
    accounts: Sequence[GpuAccount], listing: str, gpus: str, processes: Mapping[int, Process]
) -> tuple[Measured, ...]:
    """Every process of a plan beside what it takes, the largest plan first; what runs and is not planned comes last."""
    numbers = {uuid: int(index) for index, uuid in (_cells(line) for line in gpus.splitlines() if line.strip())}
    found: dict[tuple[int, str], int] = {}
    for uuid, pid, size in (_cells(line) for line in listing.splitlines() if line.strip()):
        owner = owner_of(int(pid), processes)
        if owner and uuid in numbers and size.isdigit():
            key = (numbers[uuid], owner)
            found[key] = found.get(key, 0) + int(size) * MIB
    planned = dict(_planned(accounts))
    keys = sorted({*planned, *found}, key=lambda key: (-planned.get(key, 0), key))
    return tuple(
        Measured(gpu=gpu, owner=owner, planned=planned.get((gpu, owner), 0), found=found.get((gpu, owner), 0))
        for gpu, owner in keys
    )


def owner_of(pid: int, processes: Mapping[int, Process]) -> str:
    """The model whose process it is, or one below it; `tritonserver` for the server's own; empty for a stranger."""
    while pid in processes:
        command = processes[pid].command
        stub = _STUB.search(command)
        if stub:
            return stub[1]
        if command.split(" ", 1)[0].endswith(SERVER):
            return SERVER
        pid = processes[pid].parent
    return ""


def _planned(accounts: Sequence[GpuAccount]) -> Iterator[tuple[tuple[int, str], int]]:
    """Bytes of each process: a model with a context of its own is one, anything else is inside the server."""
    for account in accounts:
        alone = {one.owner for one in account.parts if one.kind == "context"}
        sums: dict[str, int] = {}
        for part in account.parts:
            owner = part.owner if part.owner in alone else SERVER
            # an arena may grow up to its limit, and need not
            sums[owner] = sums.get(owner, 0) + (0 if part.kind == "arena" else part.bytes)
        yield from (((account.index, owner), size) for owner, size in sums.items())


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split(",")]
