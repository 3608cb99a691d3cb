"""The embedded server: the real tritonserver 2.51 of the nvidia-pytriton wheel, on the CPUs of this machine."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from embedded.errors import CannotStart, LoadFailed, LoadProblem, NotReadyInTime, PortInUse, ServerDied, ServerError
    from embedded.loads import Load
    from embedded.log import LogLine
    from embedded.server import EmbeddedServer

# Name -> module. Loaded when first used, so that `tritonkit --help` need not load the server.
_HOMES = {
    "EmbeddedServer": "server",
    "Load": "loads",
    "LogLine": "log",
    **dict.fromkeys(
        ("CannotStart", "LoadFailed", "LoadProblem", "NotReadyInTime", "PortInUse", "ServerDied", "ServerError"),
        "errors",
    ),
}

__all__ = [
    "CannotStart",
    "EmbeddedServer",
    "Load",
    "LoadFailed",
    "LoadProblem",
    "LogLine",
    "NotReadyInTime",
    "PortInUse",
    "ServerDied",
    "ServerError",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'embedded' has no attribute '{name}'")
    return getattr(importlib.import_module(f"embedded.{_HOMES[name]}"), name)
