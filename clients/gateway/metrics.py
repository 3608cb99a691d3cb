"""What the gateway counts, for Prometheus. One registry per gateway; no label holds anything that a caller chose."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
ROUTES = (
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/audio/transcriptions",
    "/v1/audio/translations",
    "/v1/detections",
    "/v1/models",
    "/health",
    "/metrics",
    "/",
)


class Metrics:
    """The counters of one gateway."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "tritonkit_gateway_requests",
            "Requests answered, by route and status; 499: the caller went away before the end",
            ("route", "status"),
            registry=self.registry,
        )
        self.seconds = Histogram(
            "tritonkit_gateway_request_seconds",
            "From the request's headers to the last byte of its answer",
            ("route",),
            buckets=SECONDS,
            registry=self.registry,
        )
        self.in_flight = Gauge("tritonkit_gateway_in_flight", "Requests being answered", registry=self.registry)
        self.refused = Counter(
            "tritonkit_gateway_refused", "Requests refused because too many are in flight", registry=self.registry
        )
        self.tokens = Counter("tritonkit_gateway_tokens", "Tokens read and written", ("kind",), registry=self.registry)

    def text(self) -> bytes:
        """All counters as Prometheus reads them."""
        return generate_latest(self.registry)


def route_of(path: str) -> str:
    """The route as a label: a path that doesn't exist must not make a new time series."""
    return path if path in ROUTES else "other"
