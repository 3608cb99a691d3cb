"""Runs the server and makes sure that nothing of it outlives its starter.

Usage: supervise.py STARTER_PID GRACE_S SHM_PREFIX COMMAND...

A program of its own, run by path with an isolated interpreter, standard library only. It adopts every orphan below it,
ends the server when it is told to (SIGTERM) or when its starter is gone in whatever way, and at the end kills what is
left (Python stubs, engine processes) and removes the shared memory regions that carry the prefix. A second SIGTERM, or
SIGINT, kills at once. Exit status: the server's; 128 + signal if a signal ended it.
"""

import contextlib
import ctypes
import os
import signal
import sys
import time

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
HEARD = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD}
LEFTOVER_GRACE_S = 1.0
GIVE_UP_S = 5.0  # a process stuck in the kernel cannot be killed


def main(arguments: list[str]) -> int:
    starter, grace_s, prefix, command = int(arguments[0]), float(arguments[1]), arguments[2], arguments[3:]
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.pthread_sigmask(signal.SIG_BLOCK, HEARD)
    server = start(libc, command)
    status = wait_for_end(server, starter, grace_s)
    end_descendants()
    remove_regions(prefix)
    return status


def start(libc: ctypes.CDLL, command: list[str]) -> int:
    """The process id of the server. This process has one thread, so the parent death signal is safe to use."""
    pid = os.fork()
    if pid:
        return pid
    try:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HEARD)
        os.execv(command[0], command)
    except OSError as error:
        print(f"error: cannot run {command[0]}: {error.strerror}", file=sys.stderr, flush=True)
    os._exit(127)


def wait_for_end(server: int, starter: int, grace_s: float) -> int:
    """The exit status of the server, which is told to end when its time has come."""
    deadline = None
    while True:
        status = reap(server)
        if status is not None:
            return status
        now = time.monotonic()
        if deadline is not None and now >= deadline:
            os.kill(server, signal.SIGKILL)
            deadline = now + 3600
        wait_s = 0.3 if deadline is None else max(0.0, min(0.3, deadline - now))
        heard = signal.sigtimedwait(HEARD, wait_s)
        told = heard is not None and heard.si_signo != signal.SIGCHLD
        if heard is not None and (heard.si_signo == signal.SIGINT or (told and deadline is not None)):
            os.kill(server, signal.SIGKILL)
        elif deadline is None and (told or os.getppid() != starter):
            os.kill(server, signal.SIGTERM)
            deadline = time.monotonic() + grace_s


def reap(server: int) -> int | None:
    """Collect ended children; the exit status of the server once it is among them."""
    result = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return 1 if result is None else result
        if pid == 0:
            return result
        if pid == server:
            code = os.waitstatus_to_exitcode(status)
            result = 128 - code if code < 0 else code


def end_descendants() -> None:
    """Ask every process below this one to end, and kill those that do not within a second.

    Python's resource trackers end by themselves when those they track are gone, and only then remove the semaphores of
    processes that were killed: they are killed last.
    """
    began = time.monotonic()
    asked: set[int] = set()
    while (left := descendants()) and time.monotonic() < began + GIVE_UP_S:
        late = time.monotonic() >= began + LEFTOVER_GRACE_S
        very_late = time.monotonic() >= began + GIVE_UP_S - 1
        for pid in left:
            if very_late or (late and not is_resource_tracker(pid)) or pid not in asked:
                asked.add(pid)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL if late else signal.SIGTERM)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.02)


def is_resource_tracker(pid: int) -> bool:
    """Whether a process is one of multiprocessing's helpers."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return b"multiprocessing.resource_tracker" in file.read()
    except OSError:
        return False


def descendants() -> list[int]:
    """Every living process below this one."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    state, parent = file.read().rpartition(b")")[2].split()[:2]
            except OSError:
                continue
            # A zombie still counts: it is collected above, once its parent is gone and it is ours.
            if state != b"X":
                children.setdefault(int(parent), []).append(int(name))
    found: list[int] = []
    todo = [os.getpid()]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found


def remove_regions(prefix: str) -> None:
    """Remove the shared memory regions of models that had no time to do it themselves."""
    for name in os.listdir("/dev/shm"):
        if name.startswith(prefix):
            with contextlib.suppress(OSError):
                os.unlink(os.path.join("/dev/shm", name))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
