"""The commands: `run SCENARIO` measures and adds to results.json, `page` writes docs/benchmarks.md from it."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import subprocess
import sys

from benchmarks.peers.scenarios import SCENARIOS


def main() -> None:
    """Read the arguments and obey. Being terminated is an interrupt: what was started is ended."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    measure = commands.add_parser("run", help="measure one scenario")
    measure.add_argument("scenario", choices=SCENARIOS)
    measure.add_argument("--rounds", type=int, help="other than the scenario says")
    measure.add_argument("--anew", action="store_true", help="forget the scenario's earlier rounds")
    measure.add_argument("--only", action="append", help="a contender; may be repeated; nothing is written then")
    measure.add_argument("--wait", action="store_true", help="start all, then wait for a line: time to make it quiet")
    commands.add_parser("page", help="write docs/benchmarks.md")
    given = parser.parse_args()
    if given.command == "page":
        from benchmarks.peers.page import DOCUMENT, page
        from benchmarks.peers.results import read

        DOCUMENT.write_text(page(read()), encoding="utf-8")
    else:
        run(given.scenario, given.rounds, anew=given.anew, only=given.only, waits=given.wait)


def run(name: str, rounds: int | None, *, anew: bool, only: list[str] | None, waits: bool) -> None:
    """Measure one scenario."""
    scenario = SCENARIOS[name]
    if scenario.large:
        choose_large()  # before anything asks where the checkpoint is
    build(large=scenario.large)
    from benchmarks.peers import running
    from benchmarks.peers.machine import machine
    from benchmarks.peers.results import add

    running.learn(scenario.service)
    contenders = only or scenario.contenders
    print(f"{name}: {', '.join(contenders)}", flush=True)

    def say(words: str) -> None:
        print(words, flush=True)

    def wait() -> None:
        if waits:
            say("ready: a line starts it")
            sys.stdin.readline()

    found = asyncio.run(running.run(scenario, contenders, rounds or scenario.rounds, say, wait))
    if not only:
        add(name, found, machine(), anew=anew)


def choose_large() -> None:
    """The larger language model, made if need be, is the one of this run."""
    from benchmarks.peers.work import places

    if not places.LARGE.exists():
        subprocess.run([sys.executable, "-m", "benchmarks.peers.large", str(places.LARGE)], cwd=places.ROOT, check=True)
    os.environ[places.CHECKPOINT_VARIABLE] = str(places.LARGE)
    places.WEIGHTS = places.LARGE  # whoever imports it in this process does so later


def build(*, large: bool = False) -> None:
    """The model repository of tritonkit's side, from nothing: served code may have changed since."""
    import shutil

    from benchmarks.peers.work.places import CACHE, ROOT

    command = [sys.executable, "-m", "tritonkit", "build"]
    file = ROOT / "benchmarks" / "peers" / "pipelines.py"
    shutil.rmtree(CACHE / "repository", ignore_errors=True)
    names = ("large_chat",) if large else ("both", "with_window", "without_window", "large")
    shipped = () if large else ("detect", "transcribe", "assistant")
    subprocess.run(
        [*command, *shipped, *(f"{file}:{name}" for name in names), "--out", str(CACHE / "repository")],
        cwd=ROOT,
        check=True,
        stdout=subprocess.DEVNULL,
    )


if __name__ == "__main__":
    main()
