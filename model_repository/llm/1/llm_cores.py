"""The processor cores that an engine on a CPU stays on: all but one, which is left for whoever hands its text on.

In: VLLM_CPU_OMP_THREADS_BIND, vLLM's own variable. vLLM obeys it only where it starts a further process for the work,
which llm_engine.py avoids; here the engine's one process inherits the cores from the thread that starts it.

Left to itself the kernel moves the engine to the other core whenever a response wakes somebody on its own, and what the
core's cache held of the model is read anew (docs/performance.md).
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from llm_engine import ENVIRONMENT_PREFIX, EngineError

VARIABLE = "VLLM_CPU_OMP_THREADS_BIND"
EVERYWHERE, ALL_BUT_ONE = "nobind", "auto"


def available_cores() -> frozenset[int]:
    return frozenset(os.sched_getaffinity(0))


def setting_of(parameters: Mapping[str, str], present: Mapping[str, str]) -> str:
    """What config.pbtxt says, else the environment, else `auto`."""
    return parameters.get(f"{ENVIRONMENT_PREFIX}{VARIABLE}") or present.get(VARIABLE) or ALL_BUT_ONE


def cores_of(text: str, available: frozenset[int]) -> frozenset[int]:
    """The cores that the variable names: `nobind`: all; `auto`: all but the first; else a list such as `1,4-7`.

    Raises:
        EngineError: no such list, or a core that this process may not use.
    """
    if text == EVERYWHERE or len(available) == 1:
        return available
    if text == ALL_BUT_ONE:
        return available - {min(available)}
    try:
        wanted = frozenset(core for part in text.split(",") for core in _range_of(part))
    except ValueError:
        wanted = frozenset()
    if not wanted or not wanted <= available:
        raise EngineError(
            f"environment, {VARIABLE}: {text!r}; {EVERYWHERE}, {ALL_BUT_ONE} or a list of cores out of "
            f"{', '.join(map(str, sorted(available)))} is needed, such as {max(available)}; correct or remove it"
        )
    return wanted


def threads_of(cores: frozenset[int], available: frozenset[int]) -> int:
    """Threads to compute with: one for each core of its own; of cores that others want, too, one is left for them."""
    return len(cores) if cores != available else max(1, len(available) - 1)


def _range_of(part: str) -> range:
    first, _, last = part.partition("-")
    return range(int(first), int(last or first) + 1)


@contextmanager
def started_on(cores: frozenset[int]) -> Iterator[None]:
    """What this thread starts inside stays on these cores; the threads of this process itself are free afterwards."""
    available = available_cores()
    if cores == available:  # nothing to bind, and nobody else's binding to undo
        yield
        return
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        for thread in os.listdir("/proc/self/task"):
            with suppress(ProcessLookupError):
                os.sched_setaffinity(int(thread), available)
