"""A Ray cluster to work on: one that runs, or one of this machine alone for as long as this process lives."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from typing import Any

LOCAL = "local"


@contextlib.contextmanager
def ray_cluster(address: str = LOCAL, *, cpus: int | None = None) -> Iterator[None]:
    """Connected to Ray while the block lasts; a connection that is there already is used, and left.

    A local cluster gets a folder of its own for its files: Ray would otherwise join whatever cluster it finds traces
    of. Its path is short because Ray's sockets in it may not be longer than about 100 characters. Beware that a local
    cluster listens on all interfaces of the machine (Ray replaces 127.0.0.1), without authentication.

    Args:
        address: "local", or what a running cluster has: "auto", "host:port", "ray://host:port".
        cpus: how many CPUs a local cluster counts with; those of the machine if None.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    import ray

    if ray.is_initialized():
        yield
        return
    common: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR", "configure_logging": True}
    if address != LOCAL:
        ray.init(address=address, **common)
        try:
            yield
        finally:
            ray.shutdown()
        return
    with tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as folder:
        ray.init(address=LOCAL, num_cpus=cpus, include_dashboard=False, _temp_dir=folder, **common)
        try:
            yield
        finally:
            ray.shutdown()
