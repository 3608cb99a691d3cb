"""Mixed traffic for as long as is wanted, and what every process holds meanwhile: memory, open files, shared memory.

    python -m benchmarks.soak model_repository --seconds 3600 --out benchmarks/soak.json

Starts a server and a gateway of its own. What grows shows in the difference between the second and the last quarter:
the first one fills caches.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

from benchmarks.system import System
from benchmarks.traffic import Traffic
from starter.stubs import model_of

# One caller asks them in turn.
MIXED = "+".join(
    ("chat", "detect", "leaving", "chat", "transcribe", "wrong request", "chat", "shared memory", "chat", "ask")
)
Holding = dict[str, int]


def holdings(pids: Sequence[int]) -> dict[str, Holding]:
    """What each process and everything below it holds now, by what it runs."""
    found: dict[str, Holding] = {}
    prefixes: set[str] = set()
    for pid in pids:
        try:
            top = psutil.Process(pid)
            processes = [top, *top.children(recursive=True)]
        except psutil.NoSuchProcess:
            continue
        for one in processes:
            try:
                with one.oneshot():
                    held = {"memory": one.memory_info().rss, "files": one.num_fds(), "threads": one.num_threads()}
                    found[name_of(one)] = held
                prefixes |= prefixes_of(one.cmdline())
            except psutil.NoSuchProcess:
                continue
    regions = [one for one in Path("/dev/shm").iterdir() if one.name.startswith((*prefixes, "tritonkit-client-"))]
    found["/dev/shm"] = {"memory": sum(size_of(one) for one in regions), "files": len(regions), "threads": 0}
    return found


def prefixes_of(words: list[str]) -> set[str]:
    """How the names of a server's shared memory begin, from its flags."""
    return {word.partition("shm-region-prefix-name=")[2] for word in words if "shm-region-prefix-name=" in word}


def name_of(process: psutil.Process) -> str:
    """A model's name for its process, otherwise the program's."""
    words = process.cmdline()
    if words and words[0].endswith("triton_python_backend_stub"):
        return model_of(process.pid) or Path(words[0]).name
    if words[1:3] == ["-m", "tritonkit"]:
        return f"tritonkit {words[3]}"
    parent = process.parent()
    program = "supervise.py" if "supervise.py" in " ".join(words) else Path(words[0] if words else process.name()).name
    is_below_model = parent is not None and parent.name().startswith("triton_python")
    return f"{program} of {name_of(parent)}" if is_below_model else program  # type: ignore[arg-type]


def size_of(file: Path) -> int:
    try:
        return file.stat().st_blocks * 512
    except FileNotFoundError:
        return 0


def growth(samples: Sequence[dict[str, Holding]], name: str, what: str) -> tuple[int, int]:
    """Medians of the second and of the last quarter."""
    values = [sample[name][what] for sample in samples if name in sample]
    quarter = max(1, len(values) // 4)
    return round(statistics.median(values[quarter : 2 * quarter] or values)), round(
        statistics.median(values[-quarter:])
    )


def soak(gateway: str, grpc: str, pids: Sequence[int], *, seconds: float, pause_s: float, look_s: float) -> dict:
    """The whole measurement: what was asked, what each process held, when."""
    samples: list[dict[str, Holding]] = []
    at: list[float] = []
    began = time.monotonic()
    with Traffic(gateway, grpc, [MIXED], pause_s) as traffic:
        while time.monotonic() < began + seconds:
            samples.append(holdings(pids))
            at.append(time.monotonic() - began)
            time.sleep(look_s)
    names = sorted(samples[-1])
    return {
        "seconds": round(time.monotonic() - began),
        "requests": {f"{kind}, {fate}": count for (kind, fate), count in sorted(traffic.counts.items())},
        "second and last quarter": {
            name: {what: growth(samples, name, what) for what in ("memory", "files", "threads")} for name in names
        },
        "over time": {
            "seconds": [round(one) for one in thinned(at)],
            **{
                what: {name: [sample.get(name, {}).get(what) for sample in thinned(samples)] for name in names}
                for what in ("memory", "files")
            },
        },
    }


def thinned(values: list) -> list:
    """At most sixty of them, evenly spread."""
    step = max(1, len(values) // 60)
    return values[::step]


def main() -> None:
    """Start, run, sample; print the quarters, write everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repository", type=Path)
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds between an answer and the next request")
    parser.add_argument("--look", type=float, default=5.0, help="seconds between looks")
    parser.add_argument("--out", type=Path, help="file for all figures")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, System(given.repository, Path(folder)) as system:
        found = soak(
            system.gateway,
            system.grpc,
            system.pids,
            seconds=given.seconds,
            pause_s=given.pause,
            look_s=given.look,
        )
    if given.out:
        given.out.write_text(json.dumps(found) + "\n")
    print(json.dumps({**found, "over time": "in the file" if given.out else found["over time"]}, indent=1))


if __name__ == "__main__":
    main()
