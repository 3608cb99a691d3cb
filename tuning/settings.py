"""How one model is served, as far as it decides when requests run: a config with Triton's defaults filled in.

In: a model's config as a dict. Out: `Serving`; and back, the parts of a config that say it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

THREADS = "intra_op_thread_count"


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """What the tuner may turn, for one model.

    Attributes:
        max_batch_size: rows that run together at most; 0 for a model that does not batch.
        dynamic: whether requests are put together at all; if not, each runs alone.
        max_queue_delay_s: how long the oldest request waits for others.
        preferred: batch sizes that are sent at once when they are reached; the largest batch if none is given.
        instances: executions that may run at the same time.
        threads: of one execution on the CPU; 0 is the library's own choice, all cores.
        max_queue_size: requests that may wait, 0 for any number; further ones are refused.
        priority_levels: 1 is served first; 0 for a single queue.
        default_priority: the level of a request that names none.
    """

    max_batch_size: int = 0
    dynamic: bool = False
    max_queue_delay_s: float = 0.0
    preferred: tuple[int, ...] = ()
    instances: int = 1
    threads: int = 0
    max_queue_size: int = 0
    priority_levels: int = 0
    default_priority: int = 0

    @property
    def largest(self) -> int:
        """Rows of the largest batch that is put together without need."""
        return max(self.preferred, default=max(1, self.max_batch_size))

    @property
    def limit(self) -> int:
        """Rows that no batch exceeds."""
        return max(1, self.max_batch_size)


def serving_of(config: Mapping[str, Any]) -> Serving:
    """What a config says."""
    batching = config.get("dynamic_batching")
    told = batching or {}
    policy = told.get("default_queue_policy", {})
    groups = config.get("instance_group", ())
    parameter = config.get("parameters", {}).get(THREADS, {})
    largest = int(config.get("max_batch_size", 0))
    preferred = tuple(sorted(int(size) for size in told.get("preferred_batch_size", ())))
    return Serving(
        max_batch_size=largest,
        dynamic=batching is not None,
        max_queue_delay_s=int(told.get("max_queue_delay_microseconds", 0)) / 1e6,
        preferred=() if preferred == (largest,) else preferred,  # a server fills that in
        instances=sum(int(group.get("count", 1)) for group in groups) or 1,
        threads=int(parameter.get("string_value", 0)),
        max_queue_size=int(policy.get("max_queue_size", 0)),
        priority_levels=int(told.get("priority_levels", 0)),
        default_priority=int(told.get("default_priority_level", 0)),
    )


def config_parts(serving: Serving, config: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of `config` that `serving` changes, to be merged into it. Nothing where it agrees."""
    parts: dict[str, Any] = {}
    before = serving_of(config)
    if serving.max_batch_size != before.max_batch_size:
        parts["max_batch_size"] = serving.max_batch_size
    window = (serving.dynamic, serving.max_queue_delay_s, serving.preferred)
    if serving.dynamic and (parts or window != (before.dynamic, before.max_queue_delay_s, before.preferred)):
        parts["dynamic_batching"] = {
            "max_queue_delay_microseconds": round(serving.max_queue_delay_s * 1e6),
            "preferred_batch_size": list(serving.preferred),
        }
    if serving.instances != before.instances:
        group: Mapping[str, Any] = next(iter(config.get("instance_group", ())), {})
        kept = {key: group[key] for key in ("kind", "gpus") if group.get(key)}
        parts["instance_group"] = [{**kept, "count": serving.instances}]
    if serving.threads != before.threads:
        parts["parameters"] = {THREADS: {"string_value": str(serving.threads)}}
    return parts


def config_with(config: Mapping[str, Any], parts: Mapping[str, Any]) -> dict[str, Any]:
    """`config` with parts of it replaced, tables key by key."""
    tables = {key: {**config.get(key, {}), **part} for key, part in parts.items() if isinstance(part, Mapping)}
    return {**config, **parts, **tables}
