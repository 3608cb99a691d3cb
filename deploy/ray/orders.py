"""What a Ray Serve application of ours is told, as plain values that a config file can hold."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from deploy.errors import DeployError

APPLICATION, DEPLOYMENT = "tritonkit", "Triton"
IMPORT_PATH = "deploy.ray.application:build"


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """Orders for an application.

    Attributes:
        repository: the model repository, as the machines of the cluster see it.
        pipelines: what is served, each at /NAME.
        least, most: replicas; none at all while nobody asks is possible.
        at_once: requests that one replica works on; a replica is added when there are more for each.
        cpus, gpus: what Ray counts for one replica.
        health_period_s, health_timeout_s: how often a replica asks its own pipelines, and how long they may take.
        up_s, down_s: how long load must be high, or low, before replicas are added or ended.
        look_back_s: over how long the load is taken; more than Ray's own interval of 10 s.
        drain_s: how long requests in flight may take when a replica ends.
        cpu_threads: threads of each numeric library and model process.
        cache: folder for the assembled backends of the embedded server.
    """

    repository: str
    pipelines: tuple[str, ...]
    least: int = 1
    most: int = 4
    at_once: int = 8
    cpus: float = 1.0
    gpus: float = 0.0
    health_period_s: float = 10.0
    health_timeout_s: float = 30.0
    up_s: float = 10.0
    down_s: float = 300.0
    look_back_s: float = 30.0
    drain_s: float = 30.0
    cpu_threads: int | None = None
    cache: str = ".cache"


def orders_of(values: Mapping[str, Any]) -> Orders:
    """The orders in a config file's `args`.

    Raises:
        DeployError: something that orders do not have, or something missing.
    """
    known = {one.name for one in fields(Orders)}
    unknown = sorted(set(values) - known)
    missing = [name for name in ("repository", "pipelines") if not values.get(name)]
    if unknown or missing:
        wrong = [f"no {name} is known" for name in unknown] + [f"{name} is missing" for name in missing]
        raise DeployError(f"args of {IMPORT_PATH}: {'; '.join(wrong)}. They are {', '.join(sorted(known))}.")
    return Orders(**{**values, "pipelines": tuple(values["pipelines"])})


def options_of(orders: Orders) -> dict[str, Any]:
    """The deployment's options, as Ray Serve names them."""
    autoscaling = {
        "min_replicas": orders.least,
        "initial_replicas": max(1, orders.least),
        "max_replicas": orders.most,
        "target_ongoing_requests": orders.at_once,
        "upscale_delay_s": orders.up_s,
        "downscale_delay_s": orders.down_s,
        "look_back_period_s": orders.look_back_s,
    }
    return {
        "autoscaling_config": autoscaling,
        # Half again as many wait inside the replica, so that Triton's batcher sees the next ones.
        "max_ongoing_requests": orders.at_once + (orders.at_once + 1) // 2,
        "health_check_period_s": orders.health_period_s,
        # Ray's limit stands above ours: a pipeline that hangs is then named in the log.
        "health_check_timeout_s": orders.health_timeout_s + 5,
        "graceful_shutdown_timeout_s": orders.drain_s,
        "ray_actor_options": {"num_cpus": orders.cpus, "num_gpus": orders.gpus},
    }


def config_of(orders: Orders, *, route: str = "/", host: str = "127.0.0.1", port: int = 8000) -> dict[str, Any]:
    """A config file of Ray Serve: `serve deploy FILE`; applying a changed one rolls the replicas over."""
    args = {**asdict(orders), "pipelines": list(orders.pipelines)}
    application = {
        "name": APPLICATION,
        "route_prefix": route,
        "import_path": IMPORT_PATH,
        "runtime_env": {"env_vars": {"ORT_DISABLE_TELEMETRY": "1"}},
        "args": args,
        "deployments": [{"name": DEPLOYMENT, **options_of(orders)}],
    }
    return {"http_options": {"host": host, "port": port}, "applications": [application]}
