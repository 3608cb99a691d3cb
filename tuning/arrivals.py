"""When requests come in a simulation: at random, as from callers who do not know of each other."""

from __future__ import annotations

import numpy as np


def poisson(per_s: float, seconds: float, seed: int) -> tuple[float, ...]:
    """Arrival times in seconds from the start; at least one."""
    random = np.random.default_rng(seed)
    count = max(1, random.poisson(per_s * seconds))
    return tuple(np.sort(random.uniform(0, seconds, count)).tolist())
