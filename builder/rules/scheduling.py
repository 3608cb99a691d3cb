"""Rules about schedulers, queues, priorities, the response cache, and what an ensemble may not have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from builder.catalog import Catalog, Entry
from builder.decoupling import is_decoupled
from builder.findings import Path, Problem, rule

_WHY = "core: model_config_utils.cc and the constructors of the schedulers"


@rule(
    "TK601",
    "error",
    "field that an ensemble may not have",
    why="core: X should not be specified for ensemble",
)
def not_on_ensembles(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """An ensemble runs nothing itself, so it has no instances, optimization or warm-up."""
    for field in ("instance_group", "optimization", "model_warmup"):
        if field in entry.config:
            yield Problem(
                path=(field,),
                found=f"{field} is given on an ensemble",
                expected="it belongs to the models of the steps",
                fix=f"Move {field} to the models it is meant for",
            )


@rule(
    "TK602",
    "error",
    "batching of a model that does not batch",
    why="The server loads it, and every request runs alone (BAT-02)",
    server="accepts",
)
def batching_without_batches(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """A window or preferred sizes beside max_batch_size 0. A queue policy alone is fine: it bounds the queue."""
    batching = entry.config.get("dynamic_batching")
    if batching is None or entry.config.get("max_batch_size", 0) > 0:
        return
    given = [field for field in ("preferred_batch_size", "max_queue_delay_microseconds") if batching.get(field)]
    if given or not any(batching.values()):
        yield Problem(
            path=("dynamic_batching", *given[:1]),
            found=f"{' and '.join(given) or 'dynamic_batching'} with max_batch_size 0",
            expected="max_batch_size above 0, and dims without the batch, are needed to batch",
            fix="Set max_batch_size and take the batch out of dims, or take this out",
        )


@rule("TK603", "error", "preferred batch size outside the batches there are", why=_WHY)
def preferred_sizes(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """Preferred sizes lie between 1 and max_batch_size."""
    most = entry.config.get("max_batch_size", 0)
    for path, scheduler in _batchers(entry):
        for index, size in enumerate(scheduler.get("preferred_batch_size", ())):
            if size < 1 or size > most:
                yield Problem(
                    path=(*path, "preferred_batch_size", index),
                    found=f"preferred_batch_size {size} with max_batch_size {most}",
                    expected=f"a size from 1 to {most} is needed" if most else "max_batch_size above 0 is needed",
                    fix="Correct the size, or raise max_batch_size",
                )


@rule("TK604", "error", "default priority that is no level", why=_WHY)
def default_priority(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """Levels need a default among them."""
    batching = entry.config.get("dynamic_batching", {})
    levels, default = batching.get("priority_levels", 0), batching.get("default_priority_level", 0)
    if levels and not 1 <= default <= levels:
        yield Problem(
            path=("dynamic_batching", "default_priority_level"),
            found=f"default_priority_level {default} with {levels} priority_levels",
            expected=f"a level from 1 (first) to {levels} is needed",
            fix="Write default_priority_level",
        )


@rule("TK605", "error", "queue policy for a priority that is no level", why=_WHY)
def priority_policies(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """Keys of priority_queue_policy are levels."""
    batching = entry.config.get("dynamic_batching", {})
    levels = batching.get("priority_levels", 0)
    for level in batching.get("priority_queue_policy", {}) if levels else ():
        if not 1 <= level <= levels:
            yield Problem(
                path=("dynamic_batching", "priority_queue_policy", level),
                found=f"a policy for level {level} with {levels} priority_levels",
                expected=f"a level from 1 to {levels} is needed",
                fix="Correct the level, or raise priority_levels",
            )


@rule(
    "TK611",
    "warning",
    "priorities without levels",
    why="Without priority_levels every request has the same priority, and the server says nothing (seen on 2.51)",
    server="accepts",
)
def no_levels(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """A default level or policies for levels, and no levels."""
    batching = entry.config.get("dynamic_batching", {})
    if batching.get("priority_levels", 0):
        return
    for field in ("default_priority_level", "priority_queue_policy"):
        if batching.get(field):
            yield Problem(
                path=("dynamic_batching", field),
                found=f"{field} without priority_levels",
                expected="priority_levels is needed with it",
                fix="Write priority_levels, or take this out",
            )


@rule("TK606", "error", "order kept where requests may overtake", why=_WHY)
def ordering(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """preserve_ordering goes with one priority level and without DELAY."""
    batching = entry.config.get("dynamic_batching", {})
    if not batching.get("preserve_ordering"):
        return
    if batching.get("priority_levels", 0) > 1:
        yield Problem(
            path=("dynamic_batching", "preserve_ordering"),
            found=f"preserve_ordering with {batching['priority_levels']} priority_levels",
            expected="one level at most is possible when order is kept",
            fix="Take preserve_ordering or the levels out",
        )
    for path, policy in _policies(entry):
        if policy.get("timeout_action") == "DELAY" and policy.get("default_timeout_microseconds"):
            yield Problem(
                path=(*path, "timeout_action"),
                found="timeout_action DELAY with preserve_ordering",
                expected="REJECT is needed when order is kept",
                fix="Write timeout_action: REJECT, or take preserve_ordering out",
            )


@rule(
    "TK607",
    "error",
    "response cache where it cannot work",
    why="core: Response Cache does not currently support model X (ENS-26)",
)
def cache(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """No cache for a model that answers several times, or that keeps state."""
    reason = _uncachable(entry, catalog)
    if entry.config.get("response_cache", {}).get("enable") and reason is not None:
        yield Problem(
            path=("response_cache",),
            found=f"response_cache with {reason}",
            expected="a model with one response for each request and without state is needed",
            fix="Take response_cache out",
        )


@rule(
    "TK612",
    "advice",
    "response cache that needs a flag",
    why="core: nothing is cached unless the server runs with --cache-config (ENS-26)",
    server="accepts",
)
def cache_flag(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """response_cache in a config; a server without a cache passes over it."""
    if catalog.launch is not None and catalog.launch.has("cache-config"):
        return
    if entry.config.get("response_cache", {}).get("enable") and _uncachable(entry, catalog) is None:
        yield Problem(
            path=("response_cache",),
            found="response_cache is enabled",
            expected="a server with a cache is needed",
            fix="Start the server with --cache-config=local,size=104857600",
        )


@rule(
    "TK608",
    "warning",
    "timeout that a request can never shorten",
    why="An override applies only below the default, and the default is 0",
    server="accepts",
)
def override_without_default(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """allow_timeout_override without a default timeout has no effect."""
    for path, policy in _policies(entry):
        if policy.get("allow_timeout_override") and not policy.get("default_timeout_microseconds"):
            yield Problem(
                path=(*path, "allow_timeout_override"),
                found="allow_timeout_override without default_timeout_microseconds",
                expected="a default that requests can shorten is needed",
                fix="Write default_timeout_microseconds",
            )


@rule(
    "TK609",
    "advice",
    "batching model without a window",
    why="The default scheduler runs every request alone and never bounds its queue",
    server="accepts",
)
def no_batcher(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """A model with batches and without a batcher."""
    if entry.is_ensemble or not entry.is_batching:
        return
    if not any(field in entry.config for field in ("dynamic_batching", "sequence_batching")):
        yield Problem(
            path=("max_batch_size",),
            found=f"max_batch_size is {entry.config['max_batch_size']} and there is no dynamic_batching",
            expected="requests of several callers run together only with a batcher",
            fix="Add dynamic_batching { max_queue_delay_microseconds: 5000 }",
        )


@rule(
    "TK610",
    "warning",
    "bounded queue on a step of an ensemble",
    why="Before 26.03 a step that refuses a request leaves its ensemble's request waiting for ever",
    server="accepts",
)
def bounded_step(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """max_queue_size on a model that an ensemble uses, on a server older than 26.03."""
    if catalog.target.triton >= (2, 67, 0):
        return
    bounded = [(path, policy) for path, policy in _policies(entry) if policy.get("max_queue_size")]
    users = _users(entry.name, catalog) if bounded else []
    for path, policy in bounded:
        if users:
            yield Problem(
                path=(*path, "max_queue_size"),
                found=f"max_queue_size {policy['max_queue_size']}, and {', '.join(users)} uses {entry.name} as a step",
                expected=f"{catalog.target.container} needs an unbounded queue here",
                fix="Take max_queue_size out, or serve with 26.03 or later",
            )


def _users(model: str, catalog: Catalog) -> list[str]:
    """The ensembles that have the model as a step."""
    return [
        other.name
        for other in catalog.entries.values()
        if any(step.get("model_name") == model for step in other.ensemble_steps())
    ]


def _uncachable(entry: Entry, catalog: Catalog) -> str | None:
    """Why the responses of a model cannot be cached."""
    if "sequence_batching" in entry.config:
        return "sequence_batching"
    return "a decoupled model" if entry.is_decoupled or is_decoupled(entry.name, catalog.entries) else None


def _batchers(entry: Entry) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    if "dynamic_batching" in entry.config:
        yield ("dynamic_batching",), entry.config["dynamic_batching"]
    oldest = entry.config.get("sequence_batching", {}).get("oldest")
    if oldest is not None:
        yield ("sequence_batching", "oldest"), oldest


def _policies(entry: Entry) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    batching = entry.config.get("dynamic_batching", {})
    if "default_queue_policy" in batching:
        yield ("dynamic_batching", "default_queue_policy"), batching["default_queue_policy"]
    for level, policy in batching.get("priority_queue_policy", {}).items():
        yield ("dynamic_batching", "priority_queue_policy", level), policy
