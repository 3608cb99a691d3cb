"""A worker that kills itself, as kill -9 does, at the n-th time that one of its messages reaches a step.

Usage: dying_worker.py SETTINGS_JSON STEP N; N 0 never dies.
"""

import asyncio
import json
import os
import signal
import sys

from worker.__main__ import say
from worker.member import work
from worker.metrics import Metrics
from worker.settings import Settings


def main(settings: str, step: str, times: str) -> None:
    left = int(times)

    def watch(reached: str, message: object) -> None:
        nonlocal left
        if reached == step:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    asyncio.run(work(Settings(**json.loads(settings)), Metrics(), said=say, watch=watch))


if __name__ == "__main__":
    main(*sys.argv[1:])
