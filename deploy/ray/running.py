"""The application on a cluster, for as long as this process lives."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

from batch.cluster import ray_cluster
from deploy.ray.orders import APPLICATION, Orders


@contextlib.contextmanager
def serving(orders: Orders, *, host: str, port: int) -> Iterator[Any]:
    """The handle of the application on the cluster that is connected; ended with the block."""
    from ray import serve

    from deploy.ray.application import build

    serve.start(http_options={"host": host, "port": port})
    try:
        yield serve.run(build(asdict(orders)), name=APPLICATION, route_prefix="/")
    finally:
        serve.shutdown()


def serve_until_told(orders: Orders, address: str, host: str, port: int, said: Callable[[str], None]) -> None:
    """Serves until SIGINT or SIGTERM."""
    told = threading.Event()
    with ray_cluster(address), serving(orders, host=host, port=port):
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: told.set())
        for pipeline in orders.pipelines:
            said(f"ready: POST http://{host}:{port}/{pipeline}")
        told.wait()
