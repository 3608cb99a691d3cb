"""What a Ray Serve application of ours is told, as plain values that a config file can hold."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from deploy.errors import DeployError

if TYPE_CHECKING:
    from deploy.facts import Facts

MIB = 2**20
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
        count_s: how often requests are counted, and told to what scales; Ray's variables for it have no effect in 2.60.
        look_back_s: over how long the load is taken; more than count_s.
        drain_s: how long requests in flight may take when a replica ends.
        cpu_threads: threads of each numeric library and model process.
        cache: folder for the assembled backends of the embedded server.
        image: run this image in a container instead of the embedded server, on the replica's GPUs.
        stock: of an image of NVIDIA's own, the version of onnxruntime-gpu that is added to it.
        shm_size: what /dev/shm of the container holds, as docker writes it.
        flags: further flags of tritonserver, such as the pools of a plan.
        env: variables of the application's processes and of its servers.
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
    count_s: float = 10.0
    look_back_s: float = 30.0
    drain_s: float = 30.0
    cpu_threads: int | None = None
    cache: str = ".cache"
    image: str = ""
    stock: str = ""
    shm_size: str = "2g"
    flags: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)


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
    listed = {name: tuple(values[name]) for name in ("pipelines", "flags") if name in values}
    return Orders(**{**values, **listed})


def options_of(orders: Orders) -> dict[str, Any]:
    """The deployment's options, as Ray Serve names them."""
    autoscaling = {
        "min_replicas": orders.least,
        "initial_replicas": max(1, orders.least),
        "max_replicas": orders.most,
        "target_ongoing_requests": orders.at_once,
        "upscale_delay_s": orders.up_s,
        "downscale_delay_s": orders.down_s,
        "metrics_interval_s": orders.count_s,
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


def sizes_of(plans: Sequence["Facts"]) -> dict[str, Any]:
    """GPUs and flags of a replica that serves all of these planned pipelines: of each size the largest is taken."""
    if not plans:
        return {}
    sizes: dict[str, int] = {}
    for flag in (flag for plan in plans for flag in plan.flags):
        name = flag.rstrip("0123456789")  # of a pool, with the GPU's number where it has one
        sizes[name] = max(sizes.get(name, 0), int(flag[len(name) :]))
    flags = tuple(f"{name}{size}" for name, size in sizes.items())
    shm_size = f"{max(plan.shm_bytes for plan in plans) // MIB}m"
    return {"gpus": float(max(plan.gpus for plan in plans)), "flags": flags, "shm_size": shm_size}


def config_of(orders: Orders, *, apart: bool = False, host: str = "127.0.0.1", port: int = 8000) -> dict[str, Any]:
    """A config file of Ray Serve: `serve deploy FILE`; applying a changed one rolls the replicas over.

    Args:
        apart: an application for each pipeline, with replicas, scaling and environment of its own, instead of one in
            which every replica serves all of them.
    """
    applications = [application_of(orders, APPLICATION, "/")]
    if apart:
        applications = [
            application_of(replace(orders, pipelines=(one,)), f"{APPLICATION}-{one}", f"/{one}")
            for one in orders.pipelines
        ]
    return {"http_options": {"host": host, "port": port}, "applications": applications}


def application_of(orders: Orders, name: str, route: str) -> dict[str, Any]:
    """One application of a config file."""
    listed = {"pipelines": list(orders.pipelines), "flags": list(orders.flags), "env": dict(orders.env)}
    return {
        "name": name,
        "route_prefix": route,
        "import_path": IMPORT_PATH,
        "runtime_env": {"env_vars": {"ORT_DISABLE_TELEMETRY": "1", **orders.env}},
        "args": {**asdict(orders), **listed},
        "deployments": [{"name": DEPLOYMENT, **options_of(orders)}],
    }
