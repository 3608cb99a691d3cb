"""What a running server says of its models, beside what was planned.

In: a catalog, and the configs that a server gives for its models (`/v2/models/NAME/config`). Out: `Difference`s in what
decides where tensors lie and how much memory is taken. Where edges really lie only the server's log tells (`verify`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from builder.catalog import Catalog
from builder.handover.places import DEVICE_OUTPUTS, FORCE, backend_name, parameter


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One thing that a server does otherwise than planned."""

    model: str
    what: str
    planned: str
    found: str


def differences(catalog: Catalog, running: Mapping[str, Mapping[str, Any] | None]) -> tuple[Difference, ...]:
    """Every difference; None for a model that the server does not have ready."""
    return tuple(_differences(catalog, running))


def _differences(catalog: Catalog, running: Mapping[str, Mapping[str, Any] | None]) -> Iterator[Difference]:
    for name, config in running.items():
        if config is None:
            yield Difference(model=name, what="state", planned="ready", found="not ready")
            continue
        planned, found = _told(catalog.entries[name].config), _told(config)
        for what in planned:
            # a server fills in instances where a config names none
            if planned[what] != found[what] and (planned[what] or what != "instance_group"):
                yield Difference(model=name, what=what, planned=planned[what], found=found[what])


def _told(config: Mapping[str, Any]) -> dict[str, str]:
    """What decides about places and memory, as text."""
    accelerators = config.get("optimization", {}).get("execution_accelerators", {})
    return {
        "backend": "" if config.get("platform") == "ensemble" else backend_name(config),
        "max_batch_size": str(int(config.get("max_batch_size", 0))),
        "instance_group": " and ".join(_groups(config)),
        FORCE: parameter(config, FORCE) or "yes",
        DEVICE_OUTPUTS: parameter(config, DEVICE_OUTPUTS) or "none",
        "accelerators": " and ".join(
            sorted(
                f"{one.get('name')} {dict(sorted(one.get('parameters', {}).items()))}"
                for one in accelerators.get("gpu_execution_accelerator", ())
            )
        ),
    }


def _groups(config: Mapping[str, Any]) -> Iterator[str]:
    for group in config.get("instance_group", ()):
        gpus = ", ".join(str(gpu) for gpu in group.get("gpus", ()))
        yield f"{group.get('count', 1)} x {group.get('kind', 'KIND_AUTO')}{f' on {gpus}' if gpus else ''}"
