"""What the engine does, in the server's own /metrics: Triton counts requests there, and knows nothing of tokens.

In: what happens to requests, and what vLLM says about itself. Out: metrics of the names in NAMES, by model.

A call of the server's metrics waits for the server. So the event loop only notes what happened; publish() hands it
over, and is called beside the loop.
"""

import threading
from collections.abc import Callable
from typing import Any

import triton_python_backend_utils as pb_utils

PREFIX = "tritonkit_llm_"
FIRST_TOKEN = f"{PREFIX}time_to_first_token_seconds"
BUCKETS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0]
COUNTERS = {
    f"{PREFIX}prompt_tokens_total": "Tokens of prompts read",
    f"{PREFIX}completion_tokens_total": "Tokens written",
}
GAUGES = {
    f"{PREFIX}kv_cache_usage": "Share of the KV cache in use, 0 to 1",
    f"{PREFIX}running_requests": "Requests that get tokens now",
    f"{PREFIX}waiting_requests": "Requests that wait inside the engine: Triton's own queue is always empty",
}

GAUGE_FIELDS = dict(zip(GAUGES, ("kv_cache_usage", "num_running_reqs", "num_waiting_reqs"), strict=True))


class Measures:
    """Notes what happens until somebody publishes it. Without metrics in the server nothing is kept."""

    def __init__(self, model: str) -> None:
        self._lock = threading.Lock()
        self._first_tokens_s: list[float] = []
        self._tokens = dict.fromkeys(COUNTERS, 0)
        self._state: Any = None
        self._metrics = metrics_of(model)

    @property
    def is_on(self) -> bool:
        return bool(self._metrics)

    def first_token(self, seconds: float) -> None:
        """A request's first token has come, so long after the request."""
        with self._lock:
            self._first_tokens_s.append(seconds)

    def finished(self, prompt_tokens: int, completion_tokens: int) -> None:
        """A request is answered."""
        with self._lock:
            for name, count in zip(COUNTERS, (prompt_tokens, completion_tokens), strict=True):
                self._tokens[name] += count

    def engine(self, stats: Any) -> None:
        """vLLM's own account of its state, a SchedulerStats, which it gives at every token."""
        self._state = stats

    def publish(self) -> None:
        """Hand over what was noted since the last time. Waits for the server: not for the event loop."""
        with self._lock:
            seconds, self._first_tokens_s = self._first_tokens_s, []
            tokens, self._tokens = self._tokens, dict.fromkeys(COUNTERS, 0)
            state, self._state = self._state, None
        if not self.is_on:
            return
        try:
            for one in seconds:
                self._metrics[FIRST_TOKEN].observe(one)
            for name, count in tokens.items():
                if count:
                    self._metrics[name].increment(count)
            for name, field in GAUGE_FIELDS.items():
                value = getattr(state, field, None)  # what a release does not have is left out
                if value is not None:
                    self._metrics[name].set(float(value))
        except pb_utils.TritonModelException:  # the server is ending
            self._metrics = {}


def metrics_of(model: str) -> dict[str, Any]:
    """A metric by name; none when the server runs without metrics."""
    kinds = pb_utils.MetricFamily
    try:
        words = "From a request to the first token of its answer"
        first = kinds(name=FIRST_TOKEN, description=words, kind=kinds.HISTOGRAM)
        found = {FIRST_TOKEN: (first, first.Metric(labels={"model": model}, buckets=BUCKETS))}
        for names, kind in ((COUNTERS, kinds.COUNTER), (GAUGES, kinds.GAUGE)):
            for name, description in names.items():
                family = kinds(name=name, description=description, kind=kind)
                found[name] = (family, family.Metric(labels={"model": model}))
    except pb_utils.TritonModelException:
        return {}
    KEPT.extend(family for family, _ in found.values())
    return {name: metric for name, (_, metric) in found.items()}


KEPT: list[Any] = []  # a family must outlive its metrics


def stat_loggers(measures: Measures) -> list[Callable[..., Any]]:
    """What AsyncLLM takes as `stat_loggers`, so that the engine's state gets here; empty if it would be for nothing."""
    if not measures.is_on:
        return []
    from vllm.v1.metrics.loggers import PrometheusStatLogger

    class Logger(PrometheusStatLogger):  # in the place of vLLM's own, which would count every token for nobody
        def __init__(self, *_: Any, **__: Any) -> None: ...

        def record(self, scheduler_stats: Any = None, iteration_stats: Any = None, *rest: Any, **more: Any) -> None:
            if scheduler_stats is not None:
                measures.engine(scheduler_stats)

        def log(self) -> None: ...

        def log_engine_initialized(self) -> None: ...

        def record_sleep_state(self, *_: Any, **__: Any) -> None: ...

        def record_admission_rejection(self, *_: Any, **__: Any) -> None: ...

    return [Logger]
