"""What the rules look at: models by name, as plain nested dicts by Triton's names, wherever they came from.

A pipeline and a folder of hand-written `.pbtxt` both become a `Catalog`, so the same rules run on both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from builder.examine import Issue, examine
from builder.folder.versions import loaded_versions
from builder.releases import EMBEDDED, Target, target, version_numbers

if TYPE_CHECKING:
    from builder.folder.values import ModelFolder
    from builder.launch import Launch


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One model of a repository.

    Attributes:
        name: name of its folder.
        config: its ModelConfig as nested dicts and lists, with right names and types only.
        issues: what was taken out of the config to make it so.
        versions: the version folders there are; None where nobody looked.
        steps: for an ensemble of a pipeline, the number of each step as the person declared it.
        file, lines: where the config was read from, and the line of each path in it; empty for a pipeline.
        pass_through: outputs that exist only when the input of the same name is given.
        inferred: its tensors' types and dims were taken from its steps; where one is missing, another rule says why.
        folder: what lies in its folder; None for a pipeline.
    """

    name: str
    config: Mapping[str, Any]
    issues: tuple[Issue, ...] = ()
    versions: tuple[int, ...] | None = None
    steps: tuple[int, ...] = ()
    file: str | None = None
    lines: Mapping[tuple[str | int, ...], int] = field(default_factory=dict)
    pass_through: tuple[str, ...] = ()
    inferred: bool = False
    folder: ModelFolder | None = None

    @property
    def is_ensemble(self) -> bool:
        """Whether it has steps, or says that it is an ensemble."""
        return "ensemble_scheduling" in self.config or self.config.get("platform") == "ensemble"

    @property
    def is_batching(self) -> bool:
        """Whether its tensors have a batch in front of their dims."""
        return int(self.config.get("max_batch_size", 0)) > 0

    @property
    def is_decoupled(self) -> bool:
        """Whether its config says that it is decoupled (for an ensemble only the graph can tell)."""
        return bool(self.config.get("model_transaction_policy", {}).get("decoupled", False))

    @property
    def may_refuse(self) -> bool:
        """Whether it looks at what tensors hold, and may refuse a request at once: Python does, and what begins so."""
        return self.is_ensemble or self.config.get("backend") == "python"

    def loaded_versions(self) -> tuple[int, ...]:
        """The versions that its policy admits, of those there are."""
        return loaded_versions(self.config.get("version_policy"), self.versions or ())

    def may_gain(self, side: str) -> bool:
        """Whether the server may add tensors of this side when it loads the model, which no file tells beforehand."""
        if self.is_ensemble:
            return False
        if self.folder is None:
            return not self.config.get(side)
        backend = self.config.get("backend") or self.config.get("platform", "")
        if backend == "python":
            sources = self.folder.python.values()
            return not sources or any(one.completes_config for one in sources)
        if backend in ("onnxruntime", "onnxruntime_onnx", "tensorrt", "tensorrt_plan", "openvino", "pytorch"):
            return not self.config.get(side)
        return True

    def tensors(self, side: str) -> dict[str, Mapping[str, Any]]:
        """Its tensors by name, `side` being "input" or "output"; of two with one name the first, as on the server."""
        result: dict[str, Mapping[str, Any]] = {}
        for declared in self.config.get(side, ()):
            result.setdefault(declared.get("name", ""), declared)
        return result

    def ensemble_steps(self) -> tuple[Mapping[str, Any], ...]:
        """The steps of an ensemble in the order of its config."""
        return tuple(self.config.get("ensemble_scheduling", {}).get("step", ()))

    def step_number(self, index: int) -> int:
        """The number under which the person knows step `index` of the config."""
        return self.steps[index] if index < len(self.steps) else index

    def step_model(self, index: int) -> str | None:
        """The model that step `index` runs."""
        steps = self.ensemble_steps()
        return steps[index].get("model_name") if index < len(steps) else None

    def line(self, path: tuple[str | int, ...]) -> int | None:
        """The line of the longest beginning of `path` that has one."""
        for length in range(len(path), -1, -1):
            if path[:length] in self.lines:
                return self.lines[path[:length]]
        return None


def entry(name: str, config: Any, **more: Any) -> Entry:
    """The entry of a config as somebody wrote it; `more` are further attributes of `Entry`."""
    clean, issues = examine(config)
    return Entry(name=name, config=clean, issues=issues, **more)


@dataclass(frozen=True, kw_only=True)
class Catalog:
    """Everything a rule may look at.

    Attributes:
        entries: every model by name, ensembles included.
        target: the server it is for.
        profile: "cpu" or "gpu", the hardware it is for.
        launch: the line that starts the server, where somebody gave it.
    """

    entries: Mapping[str, Entry]
    target: Target
    profile: str = "cpu"
    launch: Launch | None = None

    @cached_property
    def users(self) -> Mapping[str, tuple[str, ...]]:
        """For each model, the ensembles that have it as a step."""
        found: dict[str, dict[str, None]] = {}
        for entry in self.entries.values():
            for step in entry.ensemble_steps():
                found.setdefault(step.get("model_name", ""), {})[entry.name] = None
        return {model: tuple(names) for model, names in found.items()}


__all__ = ["EMBEDDED", "Catalog", "Entry", "Target", "entry", "target", "version_numbers"]
