"""What a load came to: latencies, throughput, batch sizes. The same words for a simulated run and for a real one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tuning.times import quantile


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One run.

    Attributes:
        latencies_s: of the answered requests, in order of their arrival.
        arrivals: requests that were sent; `refused` of them were turned away, the others failed or were not answered.
        seconds: from the first arrival to the last answer.
        batches: by model, how many executions had so many rows.
        took_s: by model, how long an execution of so many rows took, on average.
        queued_s: by model, how long a request waited in its queue, on average.
        busy: by name of processors, how many cores worked on average.
    """

    latencies_s: tuple[float, ...]
    arrivals: int
    refused: int = 0
    seconds: float = 0.0
    batches: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    took_s: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    queued_s: Mapping[str, float] = field(default_factory=dict)
    busy: Mapping[str, float] = field(default_factory=dict)

    @property
    def throughput(self) -> float:
        """Answers per second."""
        return len(self.latencies_s) / self.seconds if self.seconds > 0 else 0.0

    def latency_s(self, share: float) -> float:
        """The latency that `share` (0 to 1) of the answered requests do not exceed; infinite if none was answered."""
        return quantile(sorted(self.latencies_s), share) if self.latencies_s else float("inf")

    def mean_batch(self, model: str) -> float:
        """Rows of an execution, on average."""
        sizes = self.batches.get(model, {})
        return sum(rows * times for rows, times in sizes.items()) / max(1, sum(sizes.values()))
