"""Several processes that send together: started, told when to begin, listened to, and ended whatever happens.

Each is `python -m load.worker`, which reads pickles from stdin and writes pickles to stdout. CLOCK_MONOTONIC is one for
all processes of a machine, so one number tells all of them when to begin.
"""

from __future__ import annotations

import pickle
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from load.driving import LEAD_S, Sent, Share, Tally
from load.errors import LoadError
from load.plan import Connectable

Tell = Callable[[int, Tally], None]


def sent_by_workers(
    shares: list[Share], connectable: Connectable, tell: Tell, begins: Callable[[float], None]
) -> list[Sent]:
    """What each worker sent. begins: called with the end of the warm-up, by time.monotonic(), once all are ready."""
    workers = [_started(share, connectable) for share in shares]
    try:
        for worker in workers:
            _told(worker)
        start = time.monotonic() + LEAD_S + shares[0].warmup_s
        begins(start)
        for worker in workers:
            _tell(worker, start)
        return _listen(workers, tell)
    finally:
        for worker in workers:
            worker.kill()
            worker.communicate()


def _started(share: Share, connectable: Connectable) -> subprocess.Popen[bytes]:
    # -c and not -m: the worker finds what this process can import, wherever that came from.
    code = f"import sys; sys.path[:] = {sys.path!r}; from load.worker import main; main()"
    worker = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    _tell(worker, (share, connectable))
    return worker


def _tell(worker: subprocess.Popen[bytes], value: Any) -> None:
    assert worker.stdin is not None
    pickle.dump(value, worker.stdin, protocol=pickle.HIGHEST_PROTOCOL)
    worker.stdin.flush()


def _told(worker: subprocess.Popen[bytes]) -> Any:
    assert worker.stdout is not None
    try:
        return pickle.load(worker.stdout)
    except EOFError:
        found = f"process {worker.pid} ended with status {worker.wait()}"
        raise LoadError("load worker", found, "it must send until the end", "Its own words are above.") from None


def _listen(workers: list[subprocess.Popen[bytes]], tell: Tell) -> list[Sent]:
    """What each said last; a thread for each waits for its words."""
    heard: queue.Queue[tuple[int, Any]] = queue.Queue()

    def listen(number: int, worker: subprocess.Popen[bytes]) -> None:
        said: Any = None
        while not isinstance(said, Sent | LoadError):
            try:
                said = _told(worker)
            except LoadError as problem:
                said = problem
            heard.put((number, said))

    for number, worker in enumerate(workers):
        threading.Thread(target=listen, args=(number, worker), daemon=True).start()
    sent: dict[int, Sent] = {}
    while len(sent) < len(workers):
        number, said = heard.get()
        if isinstance(said, LoadError):
            raise said
        if isinstance(said, Sent):
            sent[number] = said
        else:
            tell(number, said)
    return [sent[number] for number in range(len(workers))]
