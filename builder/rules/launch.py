"""Rules about a server's launch line beside its repository (cases PYB-03, INS-05, DEP-07)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from builder.catalog import Catalog
from builder.fields import table
from builder.findings import Problem, rule
from builder.launch import Launch
from builder.tensors import did_you_mean

_PYTHON_KEYS = (
    "shm-default-byte-size",
    "shm-growth-byte-size",
    "shm-region-prefix-name",
    "stub-timeout-seconds",
    "thread-pool-size",
    "shm_message_queue_size",
)
_BYTES = ("cuda-memory-pool-byte-size", "pinned-memory-pool-byte-size")


@rule("TK141", "error", "flag newer than the server", why="server: unrecognized option; it does not start")
def newer_flag(subject: Launch, catalog: Catalog) -> Iterator[Problem]:
    """A flag that a later release brought."""
    for name in subject.flags:
        since = table()["server_flag_first_release"].get(name)
        if since is not None and not catalog.target.has((since["container"], since["triton"])):
            yield Problem(
                found=f"--{name} came with {since['container']} (Triton {since['triton']})",
                expected=f"what {catalog.target.name} knows is needed",
                fix=f"Take it out, or serve with {since['container']} or later",
            )


@rule(
    "TK142",
    "error",
    "backend setting that the Python backend does not read",
    why="pb: keys that it does not know are passed over (PYB-03, seen on 2.51)",
    server="accepts",
)
def backend_keys(subject: Launch, catalog: Catalog) -> Iterator[Problem]:
    """`--backend-config=python,KEY=VALUE` with a key that nobody reads, such as shm-size."""
    for key, _ in _python_settings(subject):
        if key not in _PYTHON_KEYS:
            shared = key in ("shm-size", "shm_size")
            yield Problem(
                found=f"--backend-config=python,{key}{did_you_mean(key, _PYTHON_KEYS)}",
                expected=f"one of {', '.join(_PYTHON_KEYS)} is needed",
                fix="Give the container more shared memory (docker run --shm-size=2g); the server has no flag for it"
                if shared
                else "Correct the key",
            )


@rule("TK143", "error", "size that is not in bytes", why="core, pb: sizes are whole numbers of bytes (PYB-03)")
def byte_sizes(subject: Launch, catalog: Catalog) -> Iterator[Problem]:
    """`1g` where a number of bytes is needed."""
    given = [(f"backend-config=python,{key}", value) for key, value in _python_settings(subject) if "byte-size" in key]
    given += [(name, value.rpartition(":")[2]) for name in _BYTES for value in subject.values(name)]
    for name, value in given:
        if not value.isdigit():
            yield Problem(
                found=f"--{name} is {value!r}",
                expected="a whole number of bytes is needed",
                fix=f"Write {_in_bytes(value) or 'for example 1073741824'}",
            )


@rule("TK144", "error", "fewer resources than one instance needs", why="core: Resource count is limited to N (INS-05)")
def resources(subject: Launch, catalog: Catalog) -> Iterator[Problem]:
    """`--rate-limit-resource=R:2` where an instance needs 4 of R."""
    limits = {}
    for value in subject.values("rate-limit-resource"):
        name, _, rest = value.partition(":")
        count = rest.partition(":")[0]
        limits[name] = int(count) if count.isdigit() else 0
    for entry in catalog.entries.values() if "execution_count" in subject.values("rate-limit") else ():
        for group in entry.config.get("instance_group", ()):
            for resource in group.get("rate_limiter", {}).get("resources", ()):
                name, count = resource.get("name", ""), resource.get("count", 0)
                if name in limits and limits[name] < count:
                    yield Problem(
                        found=f"--rate-limit-resource={name}:{limits[name]}, and {entry.name} needs {count}",
                        expected=f"at least {count} is needed",
                        fix=f"Write --rate-limit-resource={name}:{count}, or lower the count in {entry.name}",
                    )


@rule(
    "TK145",
    "error",
    "model to load that is no model's name",
    why="core: model not found in any model repository (DEP-07)",
)
def load_model(subject: Launch, catalog: Catalog) -> Iterator[Problem]:
    """`--load-model` takes names of folders, and only with explicit model control."""
    for value in subject.values("load-model"):
        name = value.rstrip("/").rsplit("/", 1)[-1]
        if value != "*" and value not in catalog.entries:
            yield Problem(
                found=f"--load-model={value}{did_you_mean(name, catalog.entries)}",
                expected="the name of a model's folder is needed, not a path",
                fix=f"Write --load-model={name}" if name in catalog.entries else "Name a model of this repository",
            )
    if subject.has("load-model") and "explicit" not in subject.values("model-control-mode"):
        yield Problem(
            found="--load-model without --model-control-mode=explicit",
            expected="explicit model control is needed to choose models",
            fix="Add --model-control-mode=explicit; an ensemble brings its steps",
        )


def _python_settings(subject: Launch) -> Iterator[tuple[str, str]]:
    for value in subject.values("backend-config"):
        backend, _, setting = value.partition(",")
        if backend == "python":
            key, _, number = setting.partition("=")
            yield key, number


def _in_bytes(text: str) -> int | None:
    found = re.fullmatch(r"(\d+)\s*([kmgt])i?b?", text.lower())
    return int(found[1]) << {"k": 10, "m": 20, "g": 30, "t": 40}[found[2]] if found else None
