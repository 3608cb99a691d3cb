"""Runs a container and makes sure that it does not outlive its starter: ending docker's client would not end it.

Usage: keeper.py STARTER_PID GRACE_S NAME docker run ...

A program of its own, standard library only. Told to end (SIGTERM), or when its starter is gone in whatever way, it has
docker stop the container, which kills it after the grace. Exit status: that of `docker run`.
"""

import os
import signal
import subprocess
import sys
from math import ceil

TOLD = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
LOOK_S = 0.3


def main(arguments: list[str]) -> int:
    starter, grace_s, name, command = int(arguments[0]), float(arguments[1]), arguments[2], arguments[3:]
    signal.pthread_sigmask(signal.SIG_BLOCK, TOLD)
    # In a session of its own: what signals us by group does not end docker's client before the container.
    client = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=hear_again)
    while client.poll() is None:
        if signal.sigtimedwait(TOLD, LOOK_S) is not None or os.getppid() != starter:
            docker(command[0], "stop", "--time", str(ceil(grace_s)), name)
            client.wait()
    docker(command[0], "rm", "--force", name)  # for one whose client has ended without it
    return client.returncode


def hear_again() -> None:
    """Undoes in a child what keeps signals waiting here."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, TOLD)


def docker(*words: str) -> None:
    """One command of docker, without its words: most often the container is gone already."""
    subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
