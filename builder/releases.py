"""The server that a repository is for: release, image, and what they bring. As data, because no arithmetic gives it.

In: a name (`24.10`, `26.07-py3`, `26.07-vllm`, `2.51.0`, `embedded`). Out: a `Target`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any

from builder.fields import containers

EMBEDDED = "24.10"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The server a repository is for.

    Attributes:
        container: tag of the release, `24.10`.
        triton: its version as numbers, (2, 51, 0).
        image: `embedded`, `py3`, `vllm-python-py3`...
        name: how a person is told of it.
        backends, agents: what it can load.
        python: minor version of the stub that runs Python models; empty where it is not known.
    """

    container: str
    triton: tuple[int, ...]
    image: str = "py3"
    name: str = ""
    backends: frozenset[str] = frozenset()
    agents: frozenset[str] = frozenset()
    python: str = ""

    def has(self, since: tuple[str, str] | None) -> bool:
        """Whether what came with `since` (container, version) exists in this release."""
        return since is None or self.triton >= version_numbers(since[1])

    def images_with(self, backend: str) -> tuple[str, ...]:
        """Names of the servers of this release that have a backend, those that only tritonkit starts left out."""
        return tuple(
            kind["title"].format(container=self.container)
            for image, kind in _images()["images"].items()
            if backend in kind["backends"] and _is_in_time(kind, self.container) and image != self.image
            if not kind.get("is_ours")
        )

    @property
    def onnx_limits(self) -> tuple[str, int, int] | None:
        """ONNX Runtime's version, and the largest ir_version and opset that it reads; None where it is not known."""
        if self.image == "embedded":
            return None
        row = _latest(_images()["onnxruntime"], self.container)
        return (row["version"], row["ir_version"], row["opset"]) if row is not None else None


def version_numbers(version: str) -> tuple[int, ...]:
    """(2, 51, 0) of `2.51.0`."""
    return tuple(int(part) for part in version.split("."))


@cache
def _images() -> Mapping[str, Any]:
    text = resources.files("builder").joinpath("data/images.json").read_text(encoding="utf-8")
    return MappingProxyType(json.loads(text))


@cache
def target(name: str) -> Target:
    """The target of a container tag with or without its image, of a Triton version, or of `embedded`.

    An image made of several is written `26.07-vllm+py3`, as docker/Dockerfile makes one.

    Raises:
        KeyError: no release or image of that name is known.
    """
    images = _images()
    wanted = name.removeprefix("nvcr.io/nvidia/tritonserver:")
    tag, _, suffix = (EMBEDDED, "", "embedded") if wanted == "embedded" else wanted.partition("-")
    by_version = {version: container for container, version in containers().items()}
    container = by_version.get(tag, tag)
    names = [images["aliases"].get(part, part) for part in (suffix or "py3").split("+")]
    kinds = [images["images"][part] for part in names]
    if not all(_is_in_time(kind, container) for kind in kinds):
        raise KeyError(name)
    row = _latest(images["python"], container)
    gone = {backend for backend, until in images["backends_until"].items() if container > until}
    return Target(
        container=container,
        triton=version_numbers(containers()[container]),
        image="+".join(names),
        name=" with parts of ".join(kind["title"].format(container=container) for kind in kinds),
        backends=frozenset(backend for kind in kinds for backend in kind["backends"]) - gone,
        agents=frozenset(agent for kind in kinds for agent in kind["agents"]),
        python=kinds[0].get("python") or (row["python"] if row is not None else ""),
    )


def target_names() -> tuple[str, ...]:
    """Names that `target` takes, without those that only differ by image."""
    return ("embedded", *containers())


def _is_in_time(kind: Mapping[str, Any], container: str) -> bool:
    return kind.get("since", "") <= container <= kind.get("until", "99.99")


def _latest(rows: list[Mapping[str, Any]], container: str) -> Mapping[str, Any] | None:
    """The last row whose `from` is not after the release."""
    fitting = [row for row in rows if row["from"] <= container]
    return fitting[-1] if fitting else None
