"""An application and a batch of stand-ins on a Ray cluster of two nodes. Prints what was seen, as one line of JSON.

Usage: on_ray.py FOLDER, which holds repository/; inside a network of its own.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import ray
import yaml
from ray import serve
from ray.cluster_utils import Cluster

from batch.cluster import ray_cluster
from batch.job import Job, run_job
from batch.on_ray import do_on_ray
from deploy.ray.orders import APPLICATION, DEPLOYMENT, Orders, config_of
from deploy.ray.running import serving

BEGAN = time.monotonic()
LIMIT_S = 90  # for whatever is waited for: many times what it takes
QUESTION = {"prompt": "x", "words": 3}
SLOW = {"prompt": "x", "words": 2, "pause_s": 0.5}


def main(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    orders = Orders(
        repository=str(folder / "repository"),
        pipelines=("llm", "echo"),
        most=2,
        at_once=2,
        cpus=0.6,  # one fits on each of the two nodes
        health_period_s=1,
        health_timeout_s=2,
        up_s=1,
        down_s=2,
        count_s=0.5,
        look_back_s=1,
        drain_s=3,
        cpu_threads=1,
        cache=os.environ["TRITONKIT_CACHE"],
    )
    seen: dict[str, Any] = {}
    with (
        tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as short,
        two_nodes(short) as cluster,
        ray_cluster(cluster.address),
    ):
        seen["seconds_cluster"] = round(time.monotonic() - BEGAN, 1)
        with serving(orders, host="127.0.0.1", port=port) as handle:
            seen["seconds_serve"] = round(time.monotonic() - BEGAN, 1)
            seen |= examined(handle, f"http://127.0.0.1:{port}")
            began = time.monotonic()
            seen |= rolled(orders, f"http://127.0.0.1:{port}", port, cluster.head_node.webui_url, folder / "serve.yaml")
            seen["seconds_rolled"] = round(time.monotonic() - began, 1)
        seen["left"] = int(not wait(lambda: not tritons(), LIMIT_S))
        seen |= batch(folder)
    print(json.dumps(seen), flush=True)


@contextlib.contextmanager
def two_nodes(folder: str) -> Iterator[Cluster]:
    """A cluster of two nodes of one CPU each, both on this machine. Its dashboard takes what `serve deploy` sends."""
    os.environ["RAY_TMPDIR"] = folder
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": True})
    cluster.add_node(num_cpus=1)
    try:
        yield cluster
    finally:
        cluster.shutdown()


def batch(folder: Path) -> dict[str, Any]:
    """A batch on two workers with the models in themselves, then on one that owns a server."""
    source, repository = folder / "in.jsonl", folder / "repository"
    rows = [{"id": f"n{number}", "prompt": "x", "words": 1} for number in range(200)]
    rows[7] = {"id": "n7"}
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    job = Job(source=source, out=folder / "out.jsonl", pipeline="llm", in_flight=8)
    offline = replace(job, out=folder / "offline.jsonl", offline=str(repository))
    began = time.monotonic()
    done = [
        run_job(offline, do_on_ray("auto", 2, None, lambda line: None)),
        run_job(job, do_on_ray("auto", 1, repository, lambda line: None)),
    ]
    return {
        "batch": [[one.done, one.bad] for one in done],
        "same": offline.out.read_text() == job.out.read_text(),
        "seconds_batch": round(time.monotonic() - began, 1),
    }


def examined(handle: Any, url: str) -> dict[str, Any]:
    """What four parts of a day have shown."""
    seen: dict[str, Any] = {}
    for part in (answers, scaling, killed, hung):
        began = time.monotonic()
        seen |= part(handle, url)
        seen[f"seconds_{part.__name__}"] = round(time.monotonic() - began, 1)
    return seen


def answers(handle: Any, url: str) -> dict[str, Any]:
    events = list(handle.options(stream=True).stream.remote("llm", QUESTION))
    sent = post(url, "/llm", QUESTION, accept="text/event-stream")
    over_http = [json.loads(line.removeprefix("data: ")) for line in sent[1].split("\n\n") if line]
    return {
        "whole": [handle.ask.remote("llm", QUESTION).result(), json.loads(post(url, "/llm", QUESTION)[1])],
        "events": [events, over_http],
        "echo": json.loads(post(url, "/echo", {"X": [1.5]})[1]),
        "errors": [post(url, path, fields)[0] for path, fields in (("/no", {}), ("/llm", {}), ("/llm", [1]))],
        "refused": post(url, "/llm", {"prompt": "x", "fail_at": 0}),
    }


def scaling(handle: Any, url: str) -> dict[str, Any]:
    stop, failures = threading.Event(), []

    def load() -> None:
        while not stop.is_set():
            try:
                handle.ask.remote("llm", SLOW).result()
            except Exception as error:
                failures.append(repr(error))

    with ThreadPoolExecutor(5) as pool:
        for _ in range(5):
            pool.submit(load)
        began = time.monotonic()
        up = wait(lambda: replicas() == 2, LIMIT_S)
        nodes = len(set(ray_workers()))
        up_s = time.monotonic() - began
        stop.set()
    began = time.monotonic()
    down = wait(lambda: replicas() == 1 and len(tritons()) == 1, LIMIT_S)
    return {
        "up": up,
        "up_s": up_s,
        "nodes": nodes,
        "down": down,
        "down_s": time.monotonic() - began,
        "failed": failures,
    }


def killed(handle: Any, url: str) -> dict[str, Any]:
    """A replica is killed while some requests are in flight and others keep coming."""
    in_flight = [handle.ask.remote("llm", SLOW) for _ in range(2)]
    time.sleep(0.2)
    before = tritons()
    replica = psutil.Process(before[0]).parents()
    worker = next(one for one in replica if "ray::" in " ".join(one.cmdline()))
    os.kill(worker.pid, signal.SIGKILL)
    lost = sum(failed(one) for one in in_flight)
    later = sum(failed(handle.ask.remote("llm", QUESTION)) for _ in range(5))
    gone = wait(lambda: not set(before) & set(tritons()), LIMIT_S)
    return {"killed_lost": lost, "killed_later": later, "killed_gone": gone}


def hung(handle: Any, url: str) -> dict[str, Any]:
    """The engine stops in its tracks: connections stay, nothing answers."""
    (before,) = tritons()
    os.kill(before, signal.SIGSTOP)
    began = time.monotonic()
    replaced = wait(lambda: bool(tritons()) and before not in tritons() and replicas() == 1, LIMIT_S)
    return {
        "hung_replaced": replaced,
        "hung_s": time.monotonic() - began,
        "hung_later": failed(handle.ask.remote("llm", QUESTION)),
    }


def rolled(orders: Orders, url: str, port: int, dashboard: str, file: Path) -> dict[str, Any]:
    """`serve deploy FILE` changes the application while it is asked; then nobody asks."""
    changed = replace(orders, least=0, env={"TRITONKIT_SEEN": "changed"}, cpus=0.4)
    file.write_text(yaml.safe_dump(config_of(changed, host="127.0.0.1", port=port)))
    command = [str(Path(sys.executable).with_name("serve")), "deploy", "--address", f"http://{dashboard}", str(file)]
    (before,) = tritons()
    stop, statuses = threading.Event(), []

    def ask() -> None:
        while not stop.is_set():
            statuses.append(post(url, "/llm", QUESTION)[0])

    with ThreadPoolExecutor(1) as pool:
        pool.submit(ask)
        deployed = subprocess.run(command, capture_output=True, text=True)
        rolled_over = wait(lambda: bool(tritons()) and before not in tritons() and replicas() == 1, LIMIT_S)
        environments = [psutil.Process(one).environ().get("TRITONKIT_SEEN") for one in tritons()]
        stop.set()
    to_none = wait(lambda: replicas() == 0 and not tritons(), LIMIT_S)
    return {
        "deployed": [deployed.returncode, deployed.stderr],
        "rolled": [rolled_over, sorted(set(statuses)), environments],
        "none_and_back": [to_none, post(url, "/llm", QUESTION)[0]],
    }


def failed(answer: Any) -> bool:
    try:
        return answer.result(timeout_s=LIMIT_S)["text"] == ""
    except (ray.exceptions.RayError, TimeoutError):
        return True


def ray_workers() -> list[int]:
    """The raylet above each Triton, which is its node."""
    found = []
    for pid in tritons():
        raylets = [one.pid for one in psutil.Process(pid).parents() if one.name() == "raylet"]
        found += raylets[:1]
    return found


def replicas() -> int:
    states = serve.status().applications[APPLICATION].deployments[DEPLOYMENT].replica_states
    return states.get("RUNNING", 0)


def tritons() -> list[int]:
    """Our tritonserver processes: everything below this program is in its network."""
    namespace = os.readlink("/proc/self/ns/net")
    found = []
    for one in psutil.process_iter(["name"]):
        try:
            is_ours = one.info["name"] == "tritonserver" and os.readlink(f"/proc/{one.pid}/ns/net") == namespace
            if is_ours and one.status() != psutil.STATUS_ZOMBIE:
                found.append(one.pid)
        except (psutil.Error, OSError):
            continue
    return found


def wait(is_so: Callable[[], bool], limit_s: float) -> bool:
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        if is_so():
            return True
        time.sleep(0.1)
    return False


def post(
    url: str, path: str, fields: Any, accept: str = "application/json", limit_s: float = LIMIT_S
) -> tuple[int, str]:
    headers = {"content-type": "application/json", "accept": accept}
    request = urllib.request.Request(f"{url}{path}", json.dumps(fields).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=limit_s) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
