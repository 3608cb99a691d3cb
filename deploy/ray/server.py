"""A replica's own Triton, as its orders say: the embedded one, or the GPU image in a container."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from batch.calls import entries
from deploy.errors import DeployError
from deploy.ray.container import ContainerServer
from deploy.ray.orders import Orders
from embedded import EmbeddedServer


def server_of(orders: Orders, gpus: Sequence[str]) -> EmbeddedServer | ContainerServer:
    """A replica's server, not started: an embedded one, or a container on these GPUs.

    Raises:
        DeployError: a container is ordered, and no GPU for it.
    """
    models = [model for pipeline in orders.pipelines for model in entries(pipeline)]
    common: dict[str, Any] = {"load": models, "flags": orders.flags, "environment": orders.env}
    common["stop_timeout_s"] = min(5.0, orders.drain_s)
    if not orders.image:
        cache, threads = Path(orders.cache), orders.cpu_threads
        return EmbeddedServer(Path(orders.repository), cache=cache, cpu_threads=threads, **common)
    if not gpus:
        raise DeployError(f"{orders.image} needs a GPU, and a replica has none. Give gpus, or the command --gpu.")
    how: dict[str, Any] = {"image": orders.image, "stock": orders.stock, "shm_size": orders.shm_size}
    return ContainerServer(Path(orders.repository), gpus=gpus, **how, **common)
