"""What the builder's commands cost besides their work, in seconds: by the clock, and of the processor.

`python benchmarks/small_costs.py [--times 5]` prints a line for each, the fastest of so many runs; exit status 1 when
one takes longer than its limit: `import builder` and `tritonkit --help` 0.3 s, `tritonkit build` of the shipped
pipelines with nothing to do 1 s, rendering and writing 1,000 models 2 s. The model repository must have been built.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from builder import Pipeline, Plan, Step, checked_plan, python
from builder.repository import write_repository

CHECKOUT = Path(__file__).parents[1]
TRITONKIT = (sys.executable, "-m", "tritonkit")
MODEL = "class TritonPythonModel:\n    def execute(self, requests):\n        return []\n"


def chain(models: int, code: Path) -> Plan:
    """One pipeline through so many models, checked."""
    (code / "model.py").write_text(MODEL, encoding="utf-8")
    steps = [
        Step(
            model=python(f"model_{n}", code=code, input=["A FP32 [-1]"], output=["B FP32 [-1]"], max_batch_size=8),
            input_map=f"A=t{n}",
            output_map=f"B=t{n + 1}",
        )
        for n in range(models)
    ]
    return checked_plan([Pipeline(name="chain", inputs="t0", outputs=f"t{models}", steps=steps)])


def ran(*command: str) -> Callable[[], None]:
    """Runs a command of its own process."""
    return lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=CHECKOUT) and None


def fastest(work: Callable[[], None], times: int) -> tuple[float, float]:
    """Seconds by the clock and of the processor, this process and those it started."""
    taken = []
    for _ in range(times):
        began, began_cpu = time.perf_counter(), cpu_seconds()
        work()
        taken.append((time.perf_counter() - began, cpu_seconds() - began_cpu))
    return min(clock for clock, _ in taken), min(cpu for _, cpu in taken)


def cpu_seconds() -> float:
    """Of this process and the children that have ended."""
    uses = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(use.ru_utime + use.ru_stime for use in uses)


def main() -> int:
    """Print the table; 1 when something takes too long."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=5)
    times = parser.parse_args().times
    with tempfile.TemporaryDirectory() as folder:
        plan = chain(1000, Path(folder))

        def write() -> None:
            with tempfile.TemporaryDirectory() as out:
                write_repository(plan, Path(out) / "repository", exports=Path(folder))

        rows = (
            ("import builder", ran(sys.executable, "-c", "import builder"), 0.3),
            ("tritonkit --help", ran(*TRITONKIT, "--help"), 0.3),
            ("tritonkit build, nothing to do", ran(*TRITONKIT, "build", "--out", "model_repository"), 1.0),
            ("render and write 1,000 models", write, 2.0),
        )
        is_late = False
        print(f"{'':32}{'seconds':>9}{'cpu s':>9}{'limit':>9}")
        for name, work, limit in rows:
            clock, cpu = fastest(work, times)
            is_late |= clock > limit
            print(f"{name:32}{clock:>9.2f}{cpu:>9.2f}{limit:>9.1f}", flush=True)
    return int(is_late)


if __name__ == "__main__":
    raise SystemExit(main())
