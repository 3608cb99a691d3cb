"""Mixed traffic for as long as is wanted, and what every process holds meanwhile: memory, open files, shared memory.

    python benchmarks/soak.py http://127.0.0.1:9000 --pid SERVE --pid GATEWAY --seconds 3600

What grows shows in the difference between the first and the last quarter: the first minutes fill caches.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path

import psutil
from faults import Traffic


def holdings(pids: list[int]) -> dict[str, dict[str, int]]:
    """What each process and everything below it holds now, by what it runs."""
    found: dict[str, dict[str, int]] = {}
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
    regions = [one for one in Path("/dev/shm").iterdir() if any(one.name.startswith(own) for own in prefixes)]
    found["/dev/shm"] = {"memory": sum(size_of(one) for one in regions), "files": len(regions), "threads": 0}
    return found


def prefixes_of(words: list[str]) -> set[str]:
    """How the names of a server's shared memory begin, from its flags."""
    return {word.partition("shm-region-prefix-name=")[2] for word in words if "shm-region-prefix-name=" in word}


def name_of(process: psutil.Process) -> str:
    """A model's name for its process, otherwise the program's."""
    words = process.cmdline()
    if words and words[0].endswith("triton_python_backend_stub"):
        return Path(words[1]).parent.parent.name
    return f"{Path(words[0]).name if words else process.name()} {process.pid}"


def size_of(file: Path) -> int:
    try:
        return file.stat().st_blocks * 512
    except FileNotFoundError:
        return 0


def growth(samples: list[dict[str, dict[str, int]]], name: str, what: str) -> tuple[int, int]:
    """Medians of the first and of the last quarter."""
    values = [sample[name][what] for sample in samples if name in sample]
    quarter = max(1, len(values) // 4)
    return round(statistics.median(values[:quarter])), round(statistics.median(values[-quarter:]))


def main() -> None:
    """Run, sample, print one line of JSON for each process, then the counts of requests."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gateway")
    parser.add_argument("--pid", type=int, action="append", required=True, help="with all processes below it")
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--every", type=float, default=1.0, help="seconds between looks")
    given = parser.parse_args()
    samples = []
    with Traffic(given.gateway) as traffic:
        end = time.monotonic() + given.seconds
        while time.monotonic() < end:
            samples.append(holdings(given.pid))
            time.sleep(given.every)
    for name in samples[-1]:
        pairs = {what: growth(samples, name, what) for what in ("memory", "files", "threads")}
        print(json.dumps({"process": name, **{what: list(pair) for what, pair in pairs.items()}}))
    print(json.dumps({f"{kind}, {fate}": count for (kind, fate), count in sorted(traffic.counts.items())}))


if __name__ == "__main__":
    main()
