"""Runs logic that is written once for both worlds: a generator yields the calls it wants made, a runner makes them.

A call is a function of a transport. On a Transport it returns its result, on an AsyncTransport something to await; the
generator gets the result back, or our error raised at its `yield`.
"""

import asyncio
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeVar

from clients.errors import ClientError

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Pause:
    """A wish to wait."""

    seconds: float


Call = Callable[[Any], Any]
Steps = Generator[Call | Pause, Any, Result]


def run(steps: Steps[Result], transport: Any) -> Result:
    """The result of the steps, made on a Transport."""
    answer: Any = None
    try:
        step = next(steps)
        while True:
            try:
                answer = _made(step, transport)
            except ClientError as error:
                step = steps.throw(error)
            else:
                step = steps.send(answer)
    except StopIteration as end:
        return end.value


def _made(step: Call | Pause, transport: Any) -> Any:
    if not isinstance(step, Pause):
        return step(transport)
    time.sleep(step.seconds)
    return None


async def run_async(steps: Steps[Result], transport: Any) -> Result:
    """The result of the steps, made on an AsyncTransport."""
    answer: Any = None
    try:
        step = next(steps)
        while True:
            try:
                answer = await (asyncio.sleep(step.seconds) if isinstance(step, Pause) else step(transport))
            except ClientError as error:
                step = steps.throw(error)
            else:
                step = steps.send(answer)
    except StopIteration as end:
        return end.value
