"""What became of each model while the server starts, read from its log."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from embedded.errors import LoadProblem
from embedded.explain import explain
from embedded.log import LogLine

State = Literal["loading", "ready", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """One model on its way. `seconds` counts from the first to the last word of the server about this load."""

    model: str
    state: State
    seconds: float = 0.0


LOADING = re.compile(r"loading: (.+):(\d+)")
READY = re.compile(r"successfully loaded '(.+)'")
FAILED = re.compile(r"failed to load '(.+)' version \d+: (.*)", re.DOTALL)
NO_VERSION = re.compile(r"failed to load model '(.+?)': (.*)", re.DOTALL)
POLL = re.compile(r"Poll failed for model directory '(.+?)': (.*)", re.DOTALL)
ENSEMBLE = re.compile(r"Invalid argument: (?:in ensemble ([^\s,]+), |ensemble '?([^\s',]+)'?)(.*)", re.DOTALL)
PROTO = re.compile(r"\[libprotobuf ERROR .*\] Error parsing text-format inference\.ModelConfig: (.*)")
NO_MODEL_FILE = re.compile(r"Failed to preinitialize Python stub: (Python model file not found in '(.+)')")
# How long other models may still tell their own problems once the server hangs.
HANG_S = 3.0
# Said once more, and better, by the line about the model.
STUB_ERROR = re.compile(r"(?:ERROR: Failed to create instance: |Failed to initialize Python stub)")
GIVING_UP = re.compile(r"Waiting for in-flight requests to complete\.")
# A word of the program itself, in front of the end: a wrong flag, a port, a repository that cannot be read.
LAST_WORDS = re.compile(r"(?:[Ee]rror: (?:creating server: )?|.*/tritonserver: )(.*)")


@dataclass(slots=True)
class Loads:
    """The state of all models, kept up to date by `read`."""

    on_change: Callable[[Load], None] = lambda load: None
    models: dict[str, Load] = field(default_factory=dict)
    problems: dict[str, LoadProblem] = field(default_factory=dict)
    is_giving_up: bool = False
    last_words: str = ""
    _began: dict[str, float] = field(default_factory=dict)
    _hangs_since: float = math.inf
    _parse_error: str = ""

    def read(self, line: LogLine) -> bool:
        """Take note of what one line says; whether it was about loading at all."""
        if found := LOADING.fullmatch(line.text):
            self._change(found[1], "loading")
        elif found := READY.fullmatch(line.text):
            self._change(found[1], "ready")
        elif found := FAILED.fullmatch(line.text) or NO_VERSION.fullmatch(line.text):
            self.fail(found[1], found[2])
        elif found := POLL.fullmatch(line.text):
            self.fail(found[1], found[2] + (f": {self._parse_error}" if self._parse_error else ""))
            self._parse_error = ""
        elif line.severity == "E" and (found := ENSEMBLE.fullmatch(line.text)):
            self.fail(found[1] or found[2], found[3] if found[1] else f"it {found[3].strip()}")
        elif found := PROTO.fullmatch(line.text):
            self._parse_error = found[1]
        elif found := NO_MODEL_FILE.search(line.text):
            self._hangs_since = time.monotonic()
            self.fail(found[2].split("/")[-3], found[1])
        elif GIVING_UP.fullmatch(line.text):
            self.is_giving_up = True
        elif not line.severity and not line.is_harmless and (found := LAST_WORDS.fullmatch(line.text)):
            self.last_words = self.last_words or found[1]
        else:
            return STUB_ERROR.match(line.text) is not None
        return True

    @property
    def still_loading(self) -> list[str]:
        """Models of which the server has not said how they ended."""
        return [load.model for load in self.models.values() if load.state == "loading"]

    @property
    def is_hanging(self) -> bool:
        """Whether the server waits for ever for a stub that ended, and has had time to tell about other models."""
        return time.monotonic() - self._hangs_since > HANG_S

    def fail(self, model: str, words: str) -> None:
        """Note that `model` does not load, and why."""
        self._change(model, "failed")
        self.problems.setdefault(model, explain(model, words))

    def _change(self, model: str, state: State) -> None:
        now = time.monotonic()
        if model in self.models and self.models[model].state != "loading":
            del self._began[model]  # loaded anew
        load = Load(model=model, state=state, seconds=now - self._began.setdefault(model, now))
        self.models[model] = load
        self.on_change(load)
