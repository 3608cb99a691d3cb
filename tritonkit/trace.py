"""How long each step of an ensemble took, from the server's own trace.

In: the folder where tritonserver writes its traces (one file per request), the ensemble's config. Out: `StepTime`s.
The server notes when it handed a request to a model and when the model's `execute` returned. A model that answers
later, from a thread of its own, is timed until the step that needed it starts.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Served models whose execute() hands the request to a thread and returns at once.
ANSWER_LATER = ("whisper_decoder", "llm")


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTime:
    """One step, in seconds: from the start of the ensemble's request to its own; waiting in its queue; all it took."""

    model: str
    start_s: float
    queue_s: float
    took_s: float


def trace_flags(folder: Path) -> list[str]:
    """Flags that make the server write a file per traced request into the folder."""
    settings = (
        "mode=triton",
        "level=TIMESTAMPS",
        "rate=1",
        "triton,log-frequency=1",
        f"triton,file={folder / 'trace'}",
    )
    return [f"--trace-config={setting}" for setting in settings]


def wait_for_trace(folder: Path, number: int, limit_s: float = 10.0) -> Path:
    """The file of the n-th traced request (from 0), written a little after its answer."""
    path = folder / f"trace.{number}"
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        if path.exists() and path.read_text().rstrip().endswith("]"):
            return path
        time.sleep(0.01)
    raise TimeoutError(f"{path}: the server has not written it after {limit_s:g} s")


def read_trace(path: Path, config: Mapping[str, Any]) -> tuple[StepTime, ...]:
    """The steps of one ensemble request, in order of their start."""
    models, stamps, parents = _events(path)
    (root,) = (number for number, parent in parents.items() if parent == 0)
    begin, end = stamps[root]["REQUEST_START"], stamps[root]["REQUEST_END"]
    starts = {models[number]: stamps[number]["REQUEST_START"] for number in models if number != root}
    steps = []
    for number, model in models.items():
        if number == root or parents[number] != root:
            continue
        times = stamps[number]
        finished = times["REQUEST_END"]
        if model in ANSWER_LATER:
            finished = min((starts[name] for name in _consumers(config, model) if name in starts), default=end)
        queued = times.get("COMPUTE_START", times["REQUEST_START"]) - times["REQUEST_START"]
        step = StepTime(
            model=model,
            start_s=(times["REQUEST_START"] - begin) / 1e9,
            queue_s=queued / 1e9,
            took_s=(finished - times["REQUEST_START"]) / 1e9,
        )
        steps.append(step)
    return tuple(sorted(steps, key=lambda step: step.start_s))


def _events(path: Path) -> tuple[dict[int, str], dict[int, dict[str, int]], dict[int, int]]:
    """By number of the request: its model, its named times in ns, the number of the request it belongs to (0: none)."""
    models: dict[int, str] = {}
    stamps: dict[int, dict[str, int]] = {}
    parents: dict[int, int] = {}
    for entry in json.loads(path.read_text()):
        number = entry["id"]
        if "model_name" in entry:
            models[number], parents[number] = entry["model_name"], entry.get("parent_id", 0)
        for stamp in entry.get("timestamps", ()):
            stamps.setdefault(number, {})[stamp["name"]] = stamp["ns"]
    return models, stamps, parents


def _consumers(config: Mapping[str, Any], model: str) -> set[str]:
    """The models of the ensemble that take a tensor of this one."""
    steps = config["ensemble_scheduling"]["step"]
    made = {tensor for step in steps if step["model_name"] == model for tensor in step["output_map"].values()}
    return {step["model_name"] for step in steps if made & set(step["input_map"].values())}
