"""What the rules look at: models by name, as plain nested dicts by Triton's names, wherever they came from.

A pipeline and a folder of hand-written `.pbtxt` both become a `Catalog`, so the same rules run on both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from builder.examine import Issue, examine
from builder.fields import containers

EMBEDDED = "24.10"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The server a repository is for.

    Attributes:
        container: tag of the release, `24.10`.
        triton: its version as numbers, (2, 51, 0).
    """

    container: str
    triton: tuple[int, ...]

    def has(self, since: tuple[str, str] | None) -> bool:
        """Whether what came with `since` (container, version) exists in this release."""
        return since is None or self.triton >= version_numbers(since[1])


def version_numbers(version: str) -> tuple[int, ...]:
    """(2, 51, 0) of `2.51.0`."""
    return tuple(int(part) for part in version.split("."))


def target(name: str) -> Target:
    """The target of a container tag, or of `embedded`.

    Raises:
        KeyError: no release of that name is known.
    """
    container = EMBEDDED if name == "embedded" else name.split("-")[0]
    return Target(container=container, triton=version_numbers(containers()[container]))


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

    def tensors(self, side: str) -> dict[str, Mapping[str, Any]]:
        """Its tensors by name, `side` being "input" or "output"."""
        return {declared.get("name", ""): declared for declared in self.config.get(side, ())}

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """Everything a rule may look at.

    Attributes:
        entries: every model by name, ensembles included.
        target: the server it is for.
        profile: "cpu" or "gpu", the hardware it is for.
    """

    entries: Mapping[str, Entry]
    target: Target
    profile: str = "cpu"
