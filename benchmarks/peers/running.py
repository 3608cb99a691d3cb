"""One run of one scenario: all contenders started, then measured in turns, round after round.

While one is measured, the others but Ray are halted: they keep their memory and take no CPU.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import aiohttp
import psutil

from benchmarks.peers.cases import Case, cases_of
from benchmarks.peers.contenders import Running, Started
from benchmarks.peers.processes import quiet_environment
from benchmarks.peers.results import Round, round_of
from benchmarks.peers.scenarios import Scenario
from benchmarks.peers.work.places import ROOT, cores

WARM_UP_S, WARM_UP_CALLERS = 0.5, 2
Log = Callable[[str], None]


def learn(service: str) -> None:
    """Works out the right answers, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.peers.cases", service]
    subprocess.run(command, cwd=ROOT, env={**os.environ, **quiet_environment()}, check=True)


async def run(
    scenario: Scenario, names: Sequence[str], rounds: int, log: Log, wait: Callable[[], object]
) -> list[Round]:
    """The rounds of one run; `wait` is called when all contenders are ready and halted."""
    began = time.monotonic()
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=None)) as session:
        started = Started(scenario.service, session)
        try:
            started.start(names)
            contenders = started.finish(log)  # blocks: nothing else is to be done meanwhile
            log(f"all {len(contenders)} contenders answer after {time.monotonic() - began:.0f} s")
            await _warmed_up(scenario, contenders)
            await asyncio.to_thread(wait)
            return await _in_turns(scenario, contenders, rounds, log)
        finally:
            await started.end()


async def _warmed_up(scenario: Scenario, contenders: Sequence[Running]) -> None:
    cases = cases_of(scenario.service)
    for one in contenders:
        await one.measure(cases, WARM_UP_CALLERS, WARM_UP_S)
    for one in contenders:
        _halt(one)


async def _in_turns(scenario: Scenario, contenders: Sequence[Running], rounds: int, log: Log) -> list[Round]:
    cases = cases_of(scenario.service)
    found: list[Round] = []
    for turn in range(rounds):
        for callers, seconds in scenario.callers.items():
            for one in _rotated(contenders, turn):
                found.append(await _round(one, cases, callers, seconds))
                log(_told(found[-1]))
    return found


def _rotated(contenders: Sequence[Running], turn: int) -> list[Running]:
    """Another one first in each round."""
    return [*contenders[turn % len(contenders) :], *contenders[: turn % len(contenders)]]


async def _round(one: Running, cases: Sequence[Case], callers: int, seconds: float) -> Round:
    for tree in one.trees():
        tree.go_on()
    await asyncio.sleep(0.2)
    await one.measure(cases, 1, 0.05)  # one answer: whatever slept is awake
    before = Used.now(one)
    tally = await one.measure(cases, callers, seconds)
    used = Used.now(one).since(before)
    memory_bytes = sum(tree.memory_bytes() for tree in one.trees())  # takes the cores for a while: not under load
    _halt(one)
    others = max(0.0, used.machine_s - used.server_s - used.client_s) / (tally.seconds * cores())
    return round_of(
        one.name,
        callers,
        tally,
        cpu_s=used.server_s,
        client_cpu_s=used.client_s,
        memory_bytes=memory_bytes,
        others_share=others,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """CPU seconds so far: of a contender, of this process, of everything on the machine."""

    server_s: float
    client_s: float
    machine_s: float

    @classmethod
    def now(cls, one: Running) -> Used:
        times = psutil.cpu_times()
        machine_s = sum(times) - times.idle - times.iowait - times.guest - times.guest_nice
        return cls(
            server_s=sum(tree.cpu_s() for tree in one.trees()), client_s=time.process_time(), machine_s=machine_s
        )

    def since(self, before: Used) -> Used:
        """What was used between the two."""
        return Used(
            server_s=self.server_s - before.server_s,
            client_s=self.client_s - before.client_s,
            machine_s=self.machine_s - before.machine_s,
        )


def _halt(one: Running) -> None:
    """Ray goes on: its parts take one another for dead when they are halted for long."""
    if one.name != "Ray Serve":
        for tree in one.trees():
            tree.halt()


def _told(one: Round) -> str:
    errors, per_s = one["wrong"] + one["failed"], one["answered"] / one["seconds"]
    times = f"p50 {one['p50_s']}  p99 {one['p99_s']}  others {one['others_share']:.0%}"
    said = f"  {one['callers']:>3} callers  {one['contender']:<32} {per_s:8.1f}/s  {times}"
    return said + (f"  ERRORS {errors}: {one['problem'][:150]}" if errors else "")
