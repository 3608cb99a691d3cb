"""Puts a server under load and says what became of every request.

from load import Item, LoadPlan, Poisson, TritonTarget, run

result = run(LoadPlan(target=TritonTarget(url="grpc://127.0.0.1:8001", items=items), arrivals=Poisson(per_s=20)))
print(result.per_s, result.latency_s.p95, result.error_rate, result.models["yolo"].mean_batch)
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from load.arrivals import Closed, Fixed, Poisson, Replay
    from load.errors import LoadError
    from load.items import items_for
    from load.outcomes import Outcome, Record
    from load.plan import LoadPlan
    from load.posts import Post, PostTarget
    from load.results import Percentiles, Result
    from load.running import Progress, ceiling_per_s, run, with_ceiling
    from load.statistics import ModelCounts
    from load.triton import Item, TritonTarget

# Name -> module. Loaded when first used: numpy and the protocols take longer than `tritonkit --help` should.
_HOMES = {
    **dict.fromkeys(("Closed", "Fixed", "Poisson", "Replay"), "arrivals"),
    "LoadError": "errors",
    "items_for": "items",
    **dict.fromkeys(("Outcome", "Record"), "outcomes"),
    "LoadPlan": "plan",
    **dict.fromkeys(("Post", "PostTarget"), "posts"),
    **dict.fromkeys(("Percentiles", "Result"), "results"),
    **dict.fromkeys(("Progress", "ceiling_per_s", "run", "with_ceiling"), "running"),
    "ModelCounts": "statistics",
    **dict.fromkeys(("Item", "TritonTarget"), "triton"),
}

__all__ = [
    "Closed",
    "Fixed",
    "Item",
    "LoadError",
    "LoadPlan",
    "ModelCounts",
    "Outcome",
    "Percentiles",
    "Poisson",
    "Post",
    "PostTarget",
    "Progress",
    "Record",
    "Replay",
    "Result",
    "TritonTarget",
    "ceiling_per_s",
    "items_for",
    "run",
    "with_ceiling",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'load' has no attribute '{name}'")
    return getattr(importlib.import_module(f"load.{_HOMES[name]}"), name)
