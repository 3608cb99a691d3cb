"""What a worker counts, for Prometheus; one registry per worker."""

from typing import Any


class Metrics:
    """The counters of one worker."""

    def __init__(self) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

        self.registry = CollectorRegistry()
        own: dict[str, Any] = {"registry": self.registry}
        self.messages = Counter("tritonkit_worker_messages", "Messages finished, by outcome", ("outcome",), **own)
        self.seconds = Histogram("tritonkit_worker_seconds", "From a message's arrival to its result", **own)
        self.in_flight = Gauge("tritonkit_worker_in_flight", "Messages being worked on", **own)
        self.commits = Counter("tritonkit_worker_commits", "Commits of offsets", **own)
        lag = "Messages on the broker that are not finished"
        self.lag = Gauge("tritonkit_worker_lag", lag, ("topic", "partition"), **own)

    def serve(self, port: int, host: str) -> int:
        """Serves them on http://host:port/metrics; the port, also when 0 was asked for."""
        from prometheus_client import start_http_server

        server, _ = start_http_server(port, host, registry=self.registry)
        return server.server_port
