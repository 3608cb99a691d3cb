"""Custom metrics of a model, kept in memory so that a test can read them."""

from __future__ import annotations

import enum
from bisect import bisect_left
from collections.abc import Mapping, Sequence

from tritonkit.testing.values import TritonModelException


class MetricKind(enum.Enum):
    """What a metric may do."""

    COUNTER = 0
    GAUGE = 1
    HISTOGRAM = 2


class Metric:
    """One value, or one histogram, under one set of labels."""

    def __init__(self, kind: MetricKind, buckets: Sequence[float]) -> None:
        self._kind = kind
        self._value = 0.0
        self.buckets = tuple(buckets)
        self.counts = [0] * (len(self.buckets) + 1)

    def increment(self, value: float) -> None:
        self._check("increment", MetricKind.COUNTER, MetricKind.GAUGE)
        if self._kind is MetricKind.COUNTER and value < 0:
            raise TritonModelException("Failed to increment metric value: a counter takes non-negative values only.")
        self._value += value

    def set(self, value: float) -> None:
        self._check("set", MetricKind.GAUGE)
        self._value = float(value)

    def observe(self, value: float) -> None:
        self._check("observe", MetricKind.HISTOGRAM)
        self.counts[bisect_left(self.buckets, value)] += 1

    def value(self) -> float:
        self._check("value", MetricKind.COUNTER, MetricKind.GAUGE)
        return self._value

    def _check(self, method: str, *kinds: MetricKind) -> None:
        if self._kind not in kinds:
            raise TritonModelException(f"Failed to {method} metric value: not possible for a {self._kind.name}.")


class MetricFamily:
    """Metrics of one name. The same labels give the same metric, as on the server."""

    COUNTER = MetricKind.COUNTER
    GAUGE = MetricKind.GAUGE
    HISTOGRAM = MetricKind.HISTOGRAM
    families: dict[str, MetricFamily] = {}
    kind: MetricKind

    def __init__(self, name: str, description: str, kind: MetricKind) -> None:
        known = self.families.setdefault(name, self)
        if known is not self and known.kind is not kind:
            raise TritonModelException(f"metric family '{name}' exists already and is a {known.kind.name}")
        self.name = name
        self.description = description
        self.kind = kind
        self.metrics: dict[tuple[tuple[str, str], ...], Metric] = known.metrics if known is not self else {}

    def Metric(self, labels: Mapping[str, str] | None = None, buckets: Sequence[float] | None = None) -> Metric:
        if (self.kind is MetricKind.HISTOGRAM) != (buckets is not None):
            raise TritonModelException("a HISTOGRAM needs buckets, and nothing else takes them")
        key = tuple(sorted((labels or {}).items()))
        return self.metrics.setdefault(key, Metric(self.kind, buckets or ()))
