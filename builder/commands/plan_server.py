"""What can be asked of a running server for `tritonkit plan --verify URL`: configs, metrics, processes of this machine.

In: the URL of its HTTP endpoint. Out: an `Answer`. Where tensors lie between steps and how full the CUDA pool is, no
endpoint tells: that stands in the log alone.
"""

from __future__ import annotations

import json
import re
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from builder.memory import measured as memory_measured
from builder.memory.account import GpuAccount

TIMEOUT_S = 10
HERE = ("127.0.0.1", "localhost", "::1")
_METRIC = re.compile(r"^(nv_gpu_memory_used_bytes|nv_pinned_memory_pool_total_bytes)(?:\{[^}]*\})? ([\d.e+]+)$", re.M)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a server said.

    Attributes:
        version: of Triton.
        configs: by model its config; None where it is not ready.
        used: bytes in use on its GPUs, all together; None where no metrics could be read.
        pinned: bytes of its pinned pool; likewise.
    """

    version: str
    configs: Mapping[str, Mapping[str, Any] | None]
    used: int | None = None
    pinned: int | None = None


class NoServer(Exception):
    """Nothing answers there, or no Triton."""


def ask(url: str, models: Iterable[str], metrics: str | None = None) -> Answer:
    """Ask a server about some models.

    Args:
        metrics: URL of its metrics; where none is given they are looked for two ports above, as Triton has it.

    Raises:
        NoServer: it does not answer.
    """
    root = url.rstrip("/")
    try:
        about = json.loads(_get(f"{root}/v2"))
        configs = {name: _config(root, name) for name in models}
    except (OSError, ValueError) as error:
        raise NoServer(f"{root}: no Triton server answers ({error})") from error
    return Answer(version=str(about.get("version", "?")), configs=configs, **_metrics(metrics or _beside(root)))


def _config(root: str, model: str) -> Mapping[str, Any] | None:
    try:
        _get(f"{root}/v2/models/{quote(model)}/ready")
        return dict(json.loads(_get(f"{root}/v2/models/{quote(model)}/config")))
    except urllib.error.HTTPError:
        return None


def _metrics(url: str) -> dict[str, int]:
    try:
        text = _get(url)
    except (OSError, ValueError):
        return {}
    sums: dict[str, int] = {}
    names = {"nv_gpu_memory_used_bytes": "used", "nv_pinned_memory_pool_total_bytes": "pinned"}
    for name, value in _METRIC.findall(text):
        sums[names[name]] = sums.get(names[name], 0) + int(float(value))
    return sums


def _beside(root: str) -> str:
    parts = urlsplit(root)
    return f"{parts.scheme}://{parts.hostname}:{(parts.port or 8000) + 2}/metrics"


def _get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:
        return str(answer.read().decode("utf-8", errors="replace"))


def measured_here(url: str, accounts: Sequence[GpuAccount]) -> tuple[memory_measured.Measured, ...]:
    """What the processes of a server on this machine take of its GPUs; nothing where that cannot be seen from here."""
    if urlsplit(url).hostname not in HERE:
        return ()
    try:
        listing, gpus = (
            subprocess.run(query, capture_output=True, text=True, timeout=30, check=True).stdout
            for query in (memory_measured.QUERY, memory_measured.GPUS)
        )
    except (OSError, subprocess.SubprocessError):
        return ()
    return memory_measured.measured(accounts, listing, gpus, dict(processes_here()))


def processes_here() -> Iterator[tuple[int, memory_measured.Process]]:
    """Every process of this machine that may be looked at."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except (OSError, ValueError, IndexError):  # it has ended meanwhile
            continue
        command = b" ".join(word for word in words if word).decode("utf-8", errors="replace")
        yield int(folder.name), memory_measured.Process(parent=parent, command=command)
