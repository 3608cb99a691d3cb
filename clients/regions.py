"""System shared memory for big inputs, as files: what is written, what it is called, whose it is.

A region lives in two places: an object in /dev/shm, and a mapping in the server. The object is deleted as soon as the
server has mapped it, so nothing stays in /dev/shm even if this process is killed a moment later; the mapping keeps
the memory alive until the server is told to unregister it. Names carry the process that made them, so that what a
killed client left in a server is recognised by the next one.

The object is written as a file: writing to a full /dev/shm raises an error, where touching mapped memory would kill the
process with a bus error.
"""

import contextlib
import os
import re
import secrets
from pathlib import Path

from clients.endpoint import Endpoint
from clients.errors import ArrayError, EndpointError
from clients.tensors import Tensor

FOLDER = Path("/dev/shm")
LEAST_BYTES = 256 * 1024  # below this, registering and unregistering cost more than they save (docs/clients.md)
OLDEST_SERVER = (2, 50)  # the first that refuses to unregister a region in use, where older ones crash
NAME = re.compile(r"tritonkit-client-(\d+)-(\d+)-(\d+)-[0-9a-f]+")


def check_shares_memory(endpoint: Endpoint) -> None:
    """Raises EndpointError unless the server can be on this machine and this machine has /dev/shm."""
    if not endpoint.is_loopback:
        advice = "Leave shared_memory out, or call the server by 127.0.0.1 on its own machine."
        raise EndpointError(str(endpoint), "another machine", "shared memory needs a server on this one", advice)
    if not FOLDER.is_dir() or not Path("/proc/self/ns/pid").exists():
        raise EndpointError(str(endpoint), f"no {FOLDER} here", "shared memory needs Linux", "Leave shared_memory out.")


def check_is_safe(endpoint: Endpoint, version: str) -> None:
    """Raises EndpointError for a server that would crash when a region is unregistered in use."""
    major, minor = (int(part) for part in version.split(".")[:2])
    if (major, minor) < OLDEST_SERVER:
        expected = f"shared memory needs {'.'.join(map(str, OLDEST_SERVER))} or newer"
        advice = "Older servers crash when a region is unregistered while in use. Leave shared_memory out."
        raise EndpointError(str(endpoint), f"Triton {version}", expected, advice)


def belongs_in_region(tensor: Tensor) -> bool:
    """Whether sharing this tensor is worth it."""
    return tensor.datatype != "BYTES" and tensor.byte_size >= LEAST_BYTES


def in_region(tensor: Tensor, name: str) -> Tensor:
    """The same tensor, its values in the region."""
    return Tensor(name=tensor.name, datatype=tensor.datatype, array=tensor.array, region=name)


def new_name() -> str:
    """A name that no other region has, telling the process that made it."""
    pid = os.getpid()
    return f"tritonkit-client-{_pid_namespace()}-{pid}-{_start_time(pid)}-{secrets.token_hex(6)}"


def write_region(name: str, tensor: Tensor) -> None:
    """Writes the object that the server is to map; readable by this user only.

    Raises:
        ArrayError: /dev/shm has no room.
    """
    try:
        with open(os.open(FOLDER / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(tensor.array.data)
    except OSError as error:
        delete_region(name)
        found = f"{tensor.byte_size:,} bytes did not fit in {FOLDER} ({error.strerror})"
        advice = "Enlarge it (docker run --shm-size=2g), or leave shared_memory out."
        raise ArrayError(f"input {tensor.name}", found, "room for the whole input is needed", advice) from error


def delete_region(name: str) -> None:
    """Deletes the object if it is there; a server that has mapped it isn't disturbed."""
    with contextlib.suppress(FileNotFoundError):
        (FOLDER / name).unlink()


def delete_stale_regions() -> None:
    """Deletes the objects of processes that are gone; another user's are left to that user."""
    for path in FOLDER.glob("tritonkit-client-*"):
        if is_stale(path.name):
            with contextlib.suppress(FileNotFoundError, PermissionError):
                path.unlink()


def is_stale(name: str) -> bool:
    """Whether the region was made by a process that is gone. Not known, hence False, for another pid namespace."""
    made_by = NAME.fullmatch(name)
    if not made_by:
        return False
    namespace, pid, start_time = (int(part) for part in made_by.groups())
    return namespace == _pid_namespace() and _start_time(pid) != start_time


def _pid_namespace() -> int:
    return os.stat("/proc/self/ns/pid").st_ino


def _start_time(pid: int) -> int:
    """When the process started, in clock ticks since boot; 0 if it is gone. Tells it from a later one of that pid."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0
    return int(stat.rpartition(")")[2].split()[19])
