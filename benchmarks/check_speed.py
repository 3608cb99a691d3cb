"""How long a check takes, and how the time grows: repositories of models with code, and one long ensemble.

`python benchmarks/check_speed.py [--models 1000] [--steps 200]` prints a line for each size; exit status 1 when the
largest takes 2 s of the processor or more. Reading, parsing and every rule are included, starting Python is not.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from builder.catalog import target
from builder.check import check_catalog
from builder.folder.pythonfile import read_python
from builder.folder.reading import read_repository

LIMIT_S = 2.0
CONFIG = """name: "model_{number}"
backend: "python"
max_batch_size: 8
input [
  {{ name: "IMAGE" data_type: TYPE_FP32 dims: [ 3, -1, -1 ] }},
  {{ name: "THRESHOLD" data_type: TYPE_FP32 dims: [ 1 ] optional: true }}
]
output [
  {{ name: "BOXES" data_type: TYPE_FP32 dims: [ -1, 4 ] }},
  {{ name: "LABELS" data_type: TYPE_STRING dims: [ -1 ] }}
]
instance_group [ {{ count: 1 kind: KIND_CPU }} ]
dynamic_batching {{ preferred_batch_size: [ 4, 8 ] max_queue_delay_microseconds: 500 }}
parameters {{ key: "FORCE_CPU_ONLY_INPUT_TENSORS" value {{ string_value: "yes" }} }}
version_policy {{ latest {{ num_versions: 1 }} }}
"""
CODE = '''"""Model {number}."""

import json

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.config = json.loads(args["model_config"])
        self.weight = {number}

    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        image = pb_utils.get_input_tensor_by_name(request, "IMAGE").as_numpy()
        boxes = np.zeros((len(image), 0, 4), np.float32)
        labels = np.zeros((len(image), 0), object)
        return pb_utils.InferenceResponse([pb_utils.Tensor("BOXES", boxes), pb_utils.Tensor("LABELS", labels)])
'''
LINK = """backend: "python"
input [ {{ name: "A" data_type: TYPE_FP32 dims: [ {number} ] }} ]
output [ {{ name: "B" data_type: TYPE_FP32 dims: [ {number} ] }} ]
"""


def write_repository(folder: Path, models: int, steps: int) -> None:
    """A repository of that many models, and an ensemble of that many steps through a model of its own."""
    for number in range(models):
        version = folder / f"model_{number}" / "1"
        version.mkdir(parents=True)
        (version.parent / "config.pbtxt").write_text(CONFIG.format(number=number), encoding="utf-8")
        (version / "model.py").write_text(CODE.format(number=number), encoding="utf-8")
    link = folder / "link" / "1"
    link.mkdir(parents=True)
    (link.parent / "config.pbtxt").write_text(LINK.format(number=3), encoding="utf-8")
    (link / "model.py").write_text(
        CODE.format(number=0).replace('"IMAGE"', '"A"').replace('"BOXES"', '"B"'), encoding="utf-8"
    )
    chain = folder / "chain" / "1"
    chain.mkdir(parents=True)
    lines = [
        'platform: "ensemble"',
        'input [ { name: "t0" data_type: TYPE_FP32 dims: [ 3 ] } ]',
        f'output [ {{ name: "t{steps}" data_type: TYPE_FP32 dims: [ 3 ] }} ]',
        "ensemble_scheduling {",
        *(
            f'  step {{ model_name: "link" model_version: -1 input_map {{ key: "A" value: "t{number}" }} '
            f'output_map {{ key: "B" value: "t{number + 1}" }} }}'
            for number in range(steps)
        ),
        "}",
    ]
    (chain.parent / "config.pbtxt").write_text("\n".join(lines), encoding="utf-8")


def seconds_of_check(folder: Path) -> tuple[float, float]:
    """Seconds of one check by the clock, and of the processor: on a busy machine only these are the check's own."""
    read_python.cache_clear()
    began, began_cpu = time.perf_counter(), time.process_time()
    check_catalog(read_repository(folder, target("embedded")))
    return time.perf_counter() - began, time.process_time() - began_cpu


def main() -> int:
    """Print a table; 1 when the largest repository takes too long."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=200)
    wanted = parser.parse_args()
    taken = 0.0
    print(f"{'models':>8} {'steps':>6} {'seconds':>8} {'cpu s':>8} {'cpu ms/model':>13}")
    for share in (8, 4, 2, 1):
        models, steps = wanted.models // share, wanted.steps // share
        with tempfile.TemporaryDirectory() as folder:
            write_repository(Path(folder), models, steps)
            runs = [seconds_of_check(Path(folder)) for _ in range(3)]
        clock, taken = min(seconds for seconds, _ in runs), min(cpu for _, cpu in runs)
        print(f"{models:>8} {steps:>6} {clock:>8.2f} {taken:>8.2f} {taken * 1000 / models:>13.2f}")
    return int(taken >= LIMIT_S)


if __name__ == "__main__":
    raise SystemExit(main())
