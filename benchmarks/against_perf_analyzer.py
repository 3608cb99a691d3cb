"""tritonkit load against NVIDIA's perf_analyzer: the same models, the same server, the same load, in turns.

    python benchmarks/against_perf_analyzer.py PATH_OF_PERF_ANALYZER [--seconds 4] [--rounds 3]

Two models on one embedded server: one that only copies 64 floats, where the generator costs as much as the server, and
the shipped YOLO. docs/load.md says where perf_analyzer 2.51.0 comes from and which two libraries it needs.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from embedded import EmbeddedServer
from load import Closed, LoadPlan, Poisson, TritonTarget, run
from load.arrivals import Arrivals
from load.inputs import random_items, signature_at

CHECKOUT = Path(__file__).parents[1]
COPY_CONFIG = """backend: "python"
max_batch_size: 8
input [{name: "X" data_type: TYPE_FP32 dims: [64]}]
output [{name: "Y" data_type: TYPE_FP32 dims: [64]}]
instance_group [{kind: KIND_CPU}]
"""
COPY_MODEL = """import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        arrays = [pb_utils.get_input_tensor_by_name(request, "X").as_numpy() for request in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", array)]) for array in arrays]
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One model under one load."""

    model: str
    arrivals: Arrivals

    @property
    def flags(self) -> list[str]:
        """The same load for perf_analyzer."""
        if isinstance(self.arrivals, Closed):
            return ["--concurrency-range", str(self.arrivals.callers)]
        return ["--request-rate-range", f"{self.arrivals.per_s:g}", "--request-distribution", "poisson"]


CASES = (
    Case(model="copy", arrivals=Closed(callers=1)),
    Case(model="copy", arrivals=Closed(callers=8)),
    Case(model="copy", arrivals=Poisson(per_s=200)),
    Case(model="yolo", arrivals=Closed(callers=4)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What one generator saw: answers a second, latencies in milliseconds."""

    per_s: float
    p50: float
    p95: float


@contextmanager
def server() -> Iterator[EmbeddedServer]:
    """Both models on one server."""
    with tempfile.TemporaryDirectory() as folder:
        repository = Path(folder)
        (repository / "copy" / "1").mkdir(parents=True)
        (repository / "copy" / "config.pbtxt").write_text(COPY_CONFIG)
        (repository / "copy" / "1" / "model.py").write_text(COPY_MODEL)
        (repository / "yolo").symlink_to(CHECKOUT / "model_repository" / "yolo")
        with EmbeddedServer(repository, load=("copy", "yolo"), cache=CHECKOUT / ".cache", cpu_threads=1) as started:
            yield started


def ours(address: str, case: Case, seconds: float) -> Seen:
    """What tritonkit load sees."""
    url = f"grpc://{address}"
    target = TritonTarget(url=url, items=random_items(signature_at(url, case.model), shapes={}, count=1))
    result = run(LoadPlan(target=target, arrivals=case.arrivals, seconds=seconds, warmup_s=1.0))
    assert result.error_rate == 0, result.problems
    return Seen(per_s=result.per_s, p50=result.latency_s.p50 * 1000, p95=result.latency_s.p95 * 1000)


def theirs(program: Path, address: str, case: Case, seconds: float) -> Seen:
    """What perf_analyzer sees. One window is enough: --stability-percentage 999 accepts the first three."""
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "found.csv"
        window = ["--measurement-interval", str(round(seconds * 1000 / 3)), "--stability-percentage", "999"]
        where = ["-m", case.model, "-u", address, "-i", "grpc", "-f", str(table)]
        subprocess.run([program, *where, *case.flags, *window], check=True, stdout=subprocess.DEVNULL)
        with table.open(newline="") as file:
            row = next(csv.DictReader(file))
    return Seen(
        per_s=float(row["Inferences/Second"]),
        p50=float(row["p50 latency"]) / 1000,
        p95=float(row["p95 latency"]) / 1000,
    )


def middle(seen: list[Seen]) -> Seen:
    """The median of each number."""
    return Seen(**{name: statistics.median(getattr(one, name) for one in seen) for name in ("per_s", "p50", "p95")})


def main() -> None:
    """Measure in turns and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    print("| model, load | perf_analyzer | tritonkit load | ratio of answers |\n| --- | --- | --- | --- |")
    with server() as started:
        for case in CASES:
            pairs = [
                (theirs(given.program, started.grpc, case, given.seconds), ours(started.grpc, case, given.seconds))
                for _ in range(given.rounds)
            ]
            peer, own = (middle(list(seen)) for seen in zip(*pairs, strict=True))
            cells = [f"{one.per_s:,.1f}/s, p50 {one.p50:.2f} ms, p95 {one.p95:.2f} ms" for one in (peer, own)]
            load = " ".join(case.flags[1:2]) + (" callers" if isinstance(case.arrivals, Closed) else "/s, Poisson")
            print(f"| `{case.model}`, {load} | {' | '.join(cells)} | {own.per_s / peer.per_s:.2f} |", flush=True)


if __name__ == "__main__":
    main()
