"""The embedded server: the real tritonserver 2.51 of the nvidia-pytriton wheel, on the CPUs of this machine."""

from embedded.errors import CannotStart, LoadFailed, LoadProblem, NotReadyInTime, PortInUse, ServerDied, ServerError
from embedded.loads import Load
from embedded.log import LogLine
from embedded.server import EmbeddedServer

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
