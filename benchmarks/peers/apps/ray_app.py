"""Ray Serve: a composition of deployments, each batched by `serve.batch`, behind an ingress that calls them."""

import asyncio
import sys
from typing import Any

import ray
from ray import serve
from ray.serve.handle import DeploymentHandle
from starlette.requests import Request
from starlette.responses import JSONResponse

from benchmarks.peers.work.asking import LLM_VARIABLE, chat_body, messages_of, written
from benchmarks.peers.work.places import cores
from benchmarks.peers.work.services import SERVICES, ask_in, both_in

MOST_WAITING = 256


@serve.deployment(num_replicas=1, max_ongoing_requests=MOST_WAITING, ray_actor_options={"num_cpus": 0})
class Batched:
    """One model."""

    def __init__(self, name: str) -> None:
        service = SERVICES[name]
        self._work = service.load()
        self.answer.set_max_batch_size(service.most)
        self.answer.set_batch_wait_timeout_s(service.wait_s)

    @serve.batch
    async def answer(self, asked: list[Any]) -> list[Any]:
        return await asyncio.to_thread(self._work.batch, asked)


@serve.deployment(num_replicas=1, max_ongoing_requests=MOST_WAITING, ray_actor_options={"num_cpus": 0})
class One:
    """The way in for one model."""

    def __init__(self, name: str, model: DeploymentHandle) -> None:
        self._read, self._model = SERVICES[name].read, model

    async def __call__(self, request: Request) -> JSONResponse:
        return JSONResponse(await self._model.answer.remote(self._read(await request.body())))


@serve.deployment(num_replicas=1, max_ongoing_requests=MOST_WAITING, ray_actor_options={"num_cpus": 0})
class Composed:
    """The way in for hearing and seeing at once, and for an answer about both."""

    def __init__(self, name: str, hearing: DeploymentHandle, seeing: DeploymentHandle) -> None:
        self._is_asked, self._hearing, self._seeing = name == "assistant", hearing, seeing

    async def __call__(self, request: Request) -> JSONResponse:
        body = await request.body()
        picture, samples = both_in(body)
        transcript, detections = await asyncio.gather(
            self._hearing.answer.remote(samples), self._seeing.answer.remote(picture)
        )
        noticed = {"transcript": transcript, "detections": detections}
        if not self._is_asked:
            return JSONResponse(noticed)
        chat = chat_body(messages_of(transcript, detections, ask_in(body)[2]))
        return JSONResponse({**noticed, "text": await asyncio.to_thread(written, chat)})


def application(name: str) -> serve.Application:
    """The deployments of a service."""
    if name in ("both", "assistant"):
        hearing = Batched.options(name="hearing").bind("transcribe")
        seeing = Batched.options(name="seeing").bind("detect")
        return Composed.bind(name, hearing, seeing)
    return One.bind(name, Batched.bind(name))


if __name__ == "__main__":
    import os
    import threading

    ray.init(
        num_cpus=cores(),
        include_dashboard=False,
        object_store_memory=512 * 2**20,
        log_to_driver=False,
        runtime_env={"env_vars": {LLM_VARIABLE: os.environ.get(LLM_VARIABLE, "")}},
    )
    serve.start(http_options={"host": "127.0.0.1", "port": int(sys.argv[1])})
    serve.run(application(sys.argv[2]), route_prefix=f"/{sys.argv[2]}")
    threading.Event().wait()
