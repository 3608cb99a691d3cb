"""The command line of tritonserver 2.51 for one run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path


def server_flags(
    *,
    repository: Path,
    backends: Path,
    caches: Path,
    host: str,
    ports: Mapping[str, int],
    load: Sequence[str] | None,
    shm_prefix: str,
    exit_timeout_s: float,
) -> tuple[str, ...]:
    """Flags for a server that loads what it is told and ends when a model fails."""
    endpoints = [
        flag
        for endpoint, port in ports.items()
        for flag in (f"--{endpoint}-address={host}", f"--{endpoint}-port={port}")
    ]
    control = [] if load is None else ["--model-control-mode=explicit", *(f"--load-model={name}" for name in load)]
    return (
        f"--model-repository={repository}",
        f"--backend-directory={backends}",
        f"--cache-directory={caches}",
        *endpoints,
        *control,
        "--exit-on-error=true",
        f"--exit-timeout-secs={max(1, round(exit_timeout_s))}",
        # Applies to every Python model, those of our onnxruntime backend too.
        f"--backend-config=python,shm-region-prefix-name={shm_prefix}",
    )


def controlled(load: Sequence[str] | None, flags: Sequence[str]) -> tuple[str, ...]:
    """The flags, with what lets models be loaded anew: everything is still loaded at the start if `load` is None."""
    has_mode = any(flag.startswith("--model-control-mode") for flag in flags)
    if load is not None or has_mode:
        return tuple(flags)
    return ("--model-control-mode=explicit", "--load-model=*", *flags)
