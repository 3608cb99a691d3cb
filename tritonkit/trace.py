"""How long each step of an ensemble took, from the server's own trace.

In: the folder where tritonserver writes its traces (one file per request), the ensemble's config. Out: a `Timeline`.
The server notes when it handed a request to a model and when the model's `execute` returned. A model that answers
later, from a thread of its own, is timed until the step that needed it starts.
"""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Served models whose execute() hands the request to a thread and returns at once.
ANSWER_LATER = ("whisper_decoder", "llm")
# Triton's names for the ends of queue, input, compute and output.
PARTS = ("COMPUTE_START", "COMPUTE_INPUT_END", "COMPUTE_OUTPUT_START", "COMPUTE_END")


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTime:
    """One step, in seconds.

    Attributes:
        start_s: From the start of the ensemble's request to its own.
        gap_s: From the end of the last step that it waited for to its own start: the scheduler's.
        queue_s: Waiting for an instance, or for others in its batch.
        input_s: Its tensors on their way into the model's process.
        compute_s: The model's own time.
        output_s: Its answer on its way out of the model's process.
        took_s: All of it, from its start to its answer.
        answers_later: Whether its answer came from a thread of its own, after `execute` had returned.
    """

    model: str
    start_s: float
    gap_s: float
    queue_s: float
    input_s: float
    compute_s: float
    output_s: float
    took_s: float
    answers_later: bool

    @property
    def end_s(self) -> float:
        """When its answer was there."""
        return self.start_s + self.took_s

    @property
    def rest_s(self) -> float:
        """What is in none of the parts: of a model that answers later nearly everything."""
        return self.took_s - self.queue_s - self.input_s - self.compute_s - self.output_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """One request of an ensemble: its steps in order of their start, and all it took in the server, in seconds."""

    ensemble: str
    steps: tuple[StepTime, ...]
    took_s: float

    @property
    def after_s(self) -> float:
        """From the last step's answer to the request's end."""
        return self.took_s - max((step.end_s for step in self.steps), default=0.0)


def trace_flags(folder: Path, level: str = "TIMESTAMPS") -> list[str]:
    """Flags that make the server write a file per request into the folder; with level OFF once that is asked for."""
    settings = (
        "mode=triton",
        f"level={level}",
        "rate=1",
        "triton,log-frequency=1",
        f"triton,file={folder / 'trace'}",
    )
    return [f"--trace-config={setting}" for setting in settings]


def wait_for_trace(folder: Path, model: str, number: int, limit_s: float = 10.0) -> Path:
    """The file of a model's n-th traced request (from 0), written a little after its answer.

    Others may be traced between: a client that streams sends a request to the language model beside the ensemble's.
    """
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        files = sorted(folder.glob("trace.*"), key=lambda path: int(path.suffix[1:]))
        own = [path for path in files if _asked_model(path, path.stat().st_size) == model]
        if len(own) > number:
            return own[number]
        time.sleep(0.01)
    raise TimeoutError(f"{folder}: no trace of request {number} to {model} after {limit_s:g} s")


@functools.lru_cache(maxsize=10_000)
def _asked_model(path: Path, size: int) -> str | None:
    """Whose request this is the trace of; None while it is being written. A file of the same size is not read again."""
    try:
        models, _, parents = _events(path)
    except json.JSONDecodeError:
        return None
    return next((models[number] for number, parent in parents.items() if parent == 0), None)


def read_trace(path: Path, config: Mapping[str, Any]) -> Timeline:
    """One request of an ensemble, from the file of its trace and the ensemble's config."""
    models, stamps, parents = _events(path)
    (root,) = (number for number, parent in parents.items() if parent == 0)
    begin, end = stamps[root]["REQUEST_START"], stamps[root]["REQUEST_END"]
    children = [number for number in models if parents[number] == root]
    starts = {models[number]: stamps[number]["REQUEST_START"] for number in children}
    ends = {}
    for number in children:
        model, ended = models[number], stamps[number]["REQUEST_END"]
        if model in ANSWER_LATER:
            consumers = (name for name in _consumers(config, model) if name in starts)
            ended = min((starts[name] for name in consumers), default=end)
        ends[model] = ended
    steps = []
    for number in children:
        model, times = models[number], stamps[number]
        ready = max((ends[name] for name in _producers(config, model) if name in ends), default=begin)
        steps.append(_step(model, times, begin, ready, ends[model]))
    ordered = tuple(sorted(steps, key=lambda step: step.start_s))
    return Timeline(ensemble=models[root], steps=ordered, took_s=(end - begin) / 1e9)


def _step(model: str, times: Mapping[str, int], begin: int, ready: int, ended: int) -> StepTime:
    """One step from its named times in ns, where the request began, its inputs were there, and its answer was."""
    start = times["REQUEST_START"]
    marks = [times.get("QUEUE_START", start), *(times.get(name) for name in PARTS)]
    known = [mark for mark in marks if mark is not None]
    queue, into, compute, out = (
        ((known[n + 1] - known[n]) / 1e9 for n in range(4)) if len(known) == len(marks) else (0.0,) * 4
    )
    return StepTime(
        model=model,
        start_s=(start - begin) / 1e9,
        gap_s=max(0, start - ready) / 1e9,
        queue_s=queue,
        input_s=into,
        compute_s=compute,
        output_s=out,
        took_s=(ended - start) / 1e9,
        answers_later=model in ANSWER_LATER,
    )


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


def _producers(config: Mapping[str, Any], model: str) -> set[str]:
    """The models of the ensemble that make a tensor of this one."""
    return {
        step["model_name"]
        for step in config["ensemble_scheduling"]["step"]
        if model in _consumers(config, step["model_name"])
    }
