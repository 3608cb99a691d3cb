"""Breaks things under a running server and gateway, and counts what became of the requests that ran.

    python -m benchmarks.faults model_repository                  every fault
    python -m benchmarks.faults model_repository kill-engine ...  these

Starts a server and a gateway of its own, over a copy of the repository, in /dev/shm and a folder of their own (that
takes root), and callers that ask everything there is to ask. For each fault one line of JSON: requests sent, answered,
failed cleanly, lost, wrong (benchmarks/traffic.py says what the words mean), from the fault until every kind of request
was answered three times again.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks import breaking
from benchmarks.system import System
from benchmarks.traffic import Traffic

KINDS = ("chat", "transcribe", "detect", "ask", "shared memory")
MODELS = (
    "whisper_features",
    "whisper_encoder",
    "whisper_decoder",
    "yolo_preprocess",
    "yolo",
    "yolo_postprocess",
    "prompt",
    "llm",
)
BACK_WITHIN_S = 500.0
Fault = Callable[[System], str]
FAULTS: dict[str, Fault] = {
    **{f"kill-{model}": breaking.killing(model) for model in MODELS},
    "pause-model": breaking.pause_a_model,
    "kill-engine": breaking.kill_engine,
    "kill-server": breaking.kill_server,
    "kill-client": breaking.kill_client,
    "broken-file": breaking.load_a_broken_file,
    "full-disk": breaking.build_on_a_full_disk,
    "full-shared-memory": breaking.fill_shared_memory,
    "slow-reader": breaking.read_slowly,
    "clock-jumps": breaking.jump_the_clock,
    "end-gateway": breaking.end_the_gateway,
    "end-server": breaking.end_the_server,
}
IN_OWN_PLACES = (
    'mount -t tmpfs -o size={size}m tmpfs /dev/shm && mount -t tmpfs -o size={disk}m tmpfs {folder} && exec "$@"'
)


def break_it(name: str, system: System, every_s: float) -> dict[str, object]:
    """What became of the requests from shortly before one fault until everything is answered again.

    The callers are new ones: what a fault did to a connection is part of it, and of no other.
    """
    with Traffic(system.gateway, system.grpc, KINDS, every_s) as traffic:
        wait_until_answered(traffic, time.monotonic(), "before the fault")
        began = time.monotonic()
        note = FAULTS[name](system)
        wait_until_answered(traffic, began, name)
        seconds = time.monotonic() - began
    fates: Counter[str] = Counter()
    for (_, fate), count in traffic.counts.items():
        fates[fate] += count
    return {"fault": name, "answers_again_after_s": round(seconds, 1), **fates, "note": note}


def wait_until_answered(traffic: Traffic, began: float, name: str) -> None:
    """Return when each kind of request was answered three times from now on."""
    wanted = {kind: traffic.counts[kind, "answered"] + 3 for kind in traffic.kinds}
    while late := [kind for kind, count in wanted.items() if traffic.counts[kind, "answered"] < count]:
        if time.monotonic() - began > BACK_WITHIN_S:
            raise SystemExit(f"{name}: {', '.join(late)}: not answered within {BACK_WITHIN_S:g} s")
        time.sleep(0.1)


def run(repository: Path, folder: Path, names: Sequence[str], every_s: float) -> None:
    """Break everything in turn; one line each. Exit status 1 if a request was lost or answered wrongly."""
    is_bad = False
    shutil.copytree(repository, folder / "repository")
    environment = {
        # vLLM's engine in a process of its own, as on GPUs.
        "VLLM_ENABLE_V1_MULTIPROCESSING": "1",
        **(breaking.clock(folder) if "clock-jumps" in names else {}),
    }
    with System(folder / "repository", folder, environment=environment) as system:
        for name in names:
            found = break_it(name, system, every_s)
            print(json.dumps(found), flush=True)
            is_bad |= any(fate == "wrong" or fate.startswith("lost") for fate in found)
    sys.exit(is_bad)


def main() -> None:
    """Go into places of our own, then break things there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repository", type=Path)
    parser.add_argument("faults", nargs="*", metavar="fault", help=", ".join(FAULTS))
    parser.add_argument("--every", type=float, default=0.2, help="seconds between the requests of one caller")
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    names = given.faults or list(FAULTS)
    if unknown := set(names) - set(FAULTS):
        parser.error(f"{', '.join(unknown)}: no such fault; there are {', '.join(FAULTS)}")
    if given.folder:
        run(given.repository, given.folder, names, given.every)
        return
    with tempfile.TemporaryDirectory() as folder:
        size = sum(one.stat().st_size for one in given.repository.rglob("*") if one.is_file()) // 2**20
        places = IN_OWN_PLACES.format(size=breaking.SHM_MIB, disk=size + breaking.SPARE_MIB, folder=folder)
        command = [sys.executable, "-m", "benchmarks.faults", *sys.argv[1:], "--folder", folder]
        sys.exit(subprocess.run(["unshare", "--mount", "sh", "-c", places, "sh", *command], env=os.environ).returncode)


if __name__ == "__main__":
    main()
