"""What a server costs: the ensembles `transcribe` and `detect` against the same steps in one process, in one run.

`python benchmarks/crossings.py [--rounds 7]` starts the embedded server over model_repository, asks it over gRPC, and
asks `crossings_peer.OneProcess` the same, in turns, alone and with 16 requests at once. For each it prints the time of
a request on both sides (alone: median; at once: of the whole load, divided by the number of requests), the seconds of
the processors that it cost (the client's included), and both ratios, each the median of the rounds; then which process
spent them, and where the time of one request goes inside the server. Both sides keep freed memory and the rest as
the server does (embedded.environment.DEFAULTS). Exit status 1 when a ratio of times is above 1.10 or an answer differs.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import psutil
import soundfile
import tritonclient.grpc as triton
from crossings_peer import CHECKOUT, OneProcess

from embedded import EmbeddedServer
from embedded.environment import DEFAULTS
from tritonkit.timeline import as_text
from tritonkit.trace import read_trace, trace_flags, wait_for_trace
from tritonkit.tracing import ensemble_config, middle

LIMIT = 1.10
PIPELINES = ("transcribe", "detect")
AT_ONCE = (1, 16)
REQUESTS = {"transcribe": (4, 24), "detect": (20, 96)}  # of a round, alone and at once
COLUMNS = (("one process", 13), ("server", 13), ("ratio", 7))
Ask = Callable[[], str]


class Server:
    """The two ensembles, asked over gRPC. Each call gives the one text that tells all of an answer."""

    def __init__(self, address: str, samples: np.ndarray, photo: bytes) -> None:
        self._client = triton.InferenceServerClient(address)
        self._samples, self._photo = samples, np.frombuffer(photo, np.uint8)

    def transcribe(self) -> str:
        """The transcript."""
        return self._asked("transcribe", "AUDIO", self._samples, "FP32", "TRANSCRIPT")

    def detect(self) -> str:
        """The detections, as JSON."""
        return self._asked("detect", "IMAGE", self._photo, "UINT8", "DETECTIONS")

    def trace(self) -> None:
        """From now on the server writes a file about each request."""
        self._client.update_trace_settings(settings={"trace_level": ["TIMESTAMPS"]})

    def _asked(self, model: str, name: str, array: np.ndarray, datatype: str, wanted: str) -> str:
        tensor = triton.InferInput(name, list(array.shape), datatype)
        tensor.set_data_from_numpy(array)
        return str(self._client.infer(model, [tensor]).as_numpy(wanted)[0].decode())


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Of one request: seconds by the clock, and of the processors."""

    took_s: float
    cpu_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One line of the table: who is asked, how often in a round, how many requests at once."""

    name: str
    sides: tuple[Ask, Ask]
    requests: int
    at_once: int
    costs: tuple[list[Cost], list[Cost]] = field(default_factory=lambda: ([], []))

    def measure(self, first: int) -> None:
        """One round; `first` is the side that goes first."""
        expected = self.sides[0]()
        for side in (first, 1 - first):
            self.costs[side].append(cost_of(self.sides[side], self.requests, self.at_once, expected))

    def ratio(self, value: Callable[[Cost], float]) -> float:
        """The server's against that of one process."""
        return statistics.median(value(b) / value(a) for a, b in zip(*self.costs, strict=True))

    def line(self) -> str:
        """This cell as printed."""
        columns = [f"{self.name}, {self.at_once} at once".ljust(26)]
        for value in (lambda cost: cost.took_s, lambda cost: cost.cpu_s):
            columns += [f"{1000 * statistics.median(map(value, side)):.1f}".rjust(13) for side in self.costs]
            columns.append(f"{self.ratio(value):.2f}".rjust(7))
        return "".join(columns)


def cost_of(ask: Ask, requests: int, at_once: int, expected: str) -> Cost:
    """Of one request: the median when asked one after the other, else all the time over their number.

    Raises:
        RuntimeError: an answer is another one than expected.
    """

    def asked(_: int) -> float:
        began = time.perf_counter()
        if ask() != expected:
            raise RuntimeError("an answer differs from the one of the other side")
        return time.perf_counter() - began

    began, began_cpu = time.perf_counter(), cpu_seconds()
    with ThreadPoolExecutor(at_once) as pool:
        each = list(pool.map(asked, range(requests)))
    took_s, cpu_s = time.perf_counter() - began, cpu_seconds() - began_cpu
    return Cost(took_s=statistics.median(each) if at_once == 1 else took_s / requests, cpu_s=cpu_s / requests)


def cpu_seconds() -> float:
    """Of this process and all below it, so of the server and of every Python model."""
    own = psutil.Process()
    return sum(sum(each.cpu_times()[:2]) for each in [own, *own.children(recursive=True)])


def spent(ask: Ask, requests: int, at_once: int) -> None:
    """Print how much of the processors each process of the server, and this one, spent on a request."""
    before = cpu_by_process()
    with ThreadPoolExecutor(at_once) as pool:
        list(pool.map(lambda _: ask(), range(requests)))
    for name, (user_s, system_s) in cpu_by_process().items():
        user, system = (
            1000 * (now - then) / requests for now, then in zip((user_s, system_s), before[name], strict=True)
        )
        if user + system >= 0.05:
            print(f"  {name:24}{user:>8.2f} ms user{system:>8.2f} ms system")


def cpu_by_process() -> dict[str, tuple[float, float]]:
    """Seconds, user and system, by what a process is: this one, the server, or the model it serves."""
    own = psutil.Process()
    times = {"the client": own.cpu_times()[:2]}
    for process in own.children(recursive=True):
        words = process.cmdline()
        if words and "stub" in words[0]:
            times[Path(words[1]).parts[-3]] = process.cpu_times()[:2]
        elif words and words[0].endswith("/tritonserver"):
            times["tritonserver"] = process.cpu_times()[:2]
    return times


def traced(server: Server, http: str, traces: Path, names: Sequence[str], requests: int = 15) -> None:
    """Print the timeline of the middle one of so many requests to each ensemble, and what is not a model's own time."""
    server.trace()
    for name in names:
        timelines, config = [], ensemble_config(http, name)
        for number in range(requests):
            getattr(server, name)()
            timelines.append(read_trace(wait_for_trace(traces, name, number), config))
        one = middle(timelines)
        between = sum(step.gap_s + step.queue_s + step.input_s + step.output_s for step in one.steps) + one.after_s
        print(f"\n{as_text(one)}\nall but compute: {1000 * between:.2f} ms of {1000 * one.took_s:.1f} ms")


def main() -> int:
    """Print the tables; 1 when a ratio is above the limit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repository", type=Path, default=CHECKOUT / "model_repository")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", choices=PIPELINES)
    wanted = parser.parse_args()
    if not DEFAULTS.items() <= os.environ.items():  # the C library reads them when a process starts
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **DEFAULTS})
    names = [name for name in PIPELINES if wanted.only in (None, name)]
    samples, _ = soundfile.read(CHECKOUT / "samples/sense_and_sensibility.flac", dtype="float32")
    photo = (CHECKOUT / "samples/coffee.jpg").read_bytes()
    peer = OneProcess(wanted.repository, threads=len(os.sched_getaffinity(0)))
    alone: dict[str, Ask] = {"transcribe": lambda: peer.transcribe(samples), "detect": lambda: peer.detect(photo)}
    with tempfile.TemporaryDirectory() as traces:
        flags = trace_flags(Path(traces), level="OFF")
        with EmbeddedServer(wanted.repository, load=names, cache=CHECKOUT / ".cache", flags=flags) as started:
            server = Server(started.grpc, samples, photo)
            cells = [
                Cell(name=name, sides=(alone[name], getattr(server, name)), requests=REQUESTS[name][n], at_once=at_once)
                for name in names
                for n, at_once in enumerate(AT_ONCE)
            ]
            for cell in cells:
                cost_of(cell.sides[1], 2, 1, cell.sides[0]())
            for number in range(wanted.rounds):
                for cell in cells:
                    cell.measure(number % 2)
            print("of one request, ms".ljust(26) + "".join(f"{word:>{width}}" for word, width in 2 * COLUMNS))
            print("".ljust(26) + "by the clock".rjust(33) + "of the processors".rjust(33))
            for cell in cells:
                print(cell.line(), flush=True)
            for name in names:
                print(f"\n{name}, {AT_ONCE[1]} at once, of the processors for a request:")
                spent(getattr(server, name), REQUESTS[name][1], AT_ONCE[1])
            traced(server, started.http, Path(traces), names)
    return int(max(cell.ratio(lambda cost: cost.took_s) for cell in cells) > LIMIT)


if __name__ == "__main__":
    raise SystemExit(main())
