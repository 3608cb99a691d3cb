"""The application: replicas of Triton behind Ray Serve's handles and HTTP.

    POST /PIPELINE        {"question": "..."}                     one JSON object
    POST /PIPELINE        the same, accept: text/event-stream     events as they come
    handle.ask.remote(pipeline, fields)                           the object
    handle.options(stream=True).stream.remote(pipeline, fields)   the events

Fields are those of batch/calls.py; recordings and pictures come as {"base64": ...}, or as bytes through a handle.
"""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from ray import serve

from batch.calls import Caller
from batch.errors import RowError
from clients import traced
from clients.errors import ClientError, NotReady, RequestRejected, RequestTimeout, Unreachable
from deploy.errors import DeployError
from deploy.ray.canary import smallest, zeros
from deploy.ray.orders import DEPLOYMENT, Orders, options_of, orders_of
from deploy.ray.server import server_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from clients.aio import AsyncClient

STATUS: tuple[tuple[type[Exception], int], ...] = (
    (RowError, 400),
    (RequestRejected, 422),
    (RequestTimeout, 504),
    (NotReady, 503),
    (Unreachable, 503),
)


class Triton:
    """One replica: a Triton server of its own, and what asks it."""

    def __init__(self, orders: Orders) -> None:
        self._orders = orders
        self._server = server_of(orders, assigned_gpus())
        self._server.__enter__()
        self._client: AsyncClient | None = None
        self._callers: dict[str, Caller] = {}
        self._answered_at = 0.0
        self._checked_at = 0.0

    async def ask(self, pipeline: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        """The whole answer.

        Raises:
            RowError, ClientError: as in batch/calls.py.
        """
        answer = await self._caller(pipeline)(fields)
        self._answered_at = time.monotonic()
        return answer

    async def stream(self, pipeline: str, fields: Mapping[str, Any]) -> AsyncIterator[dict[str, Any]]:
        """The answer's events as they come; a pipeline that answers once has one event, its result."""
        async with aclosing(self._caller(pipeline).events(fields)) as events:
            async for event in events:
                self._answered_at = time.monotonic()
                yield event

    async def __call__(self, request: "Request") -> "Response":
        """HTTP."""
        from starlette.responses import JSONResponse, StreamingResponse

        pipeline = request.url.path.strip("/").rpartition("/")[2]
        if pipeline not in self._orders.pipelines:
            known = ", ".join(f"/{name}" for name in self._orders.pipelines)
            return JSONResponse({"error": f"/{pipeline}: not served; {known} are"}, 404)
        if request.method != "POST":
            return JSONResponse({"error": f"{request.method}: POST with a JSON object is needed"}, 405)
        try:
            fields = json.loads(await request.body())
            if not isinstance(fields, dict):
                raise RowError(f"a JSON {type(fields).__name__}; an object with the pipeline's fields is needed")
            if "text/event-stream" in request.headers.get("accept", ""):
                events = self._sent_events(pipeline, fields, request.headers)
                return StreamingResponse(events, media_type="text/event-stream")
            with traced(request.headers):
                return JSONResponse(await self.ask(pipeline, fields))
        except (ValueError, RowError, ClientError) as error:
            return JSONResponse({"error": str(error)}, status_of(error))

    async def check_health(self) -> None:
        """Raises when a pipeline does not answer; Ray replaces the replica after three times.

        Each is asked for real, unless somebody has had an answer since the last check: a busy server needs no proof.

        Raises:
            DeployError: which one, and how.
        """
        if not self._server.is_running:
            raise DeployError("the server process has ended")
        checked, self._checked_at = self._checked_at, time.monotonic()
        if self._answered_at > checked > 0:
            return
        for pipeline in self._orders.pipelines:
            try:
                async with asyncio.timeout(self._orders.health_timeout_s):
                    await self._probe(pipeline)
            except TimeoutError:
                limit = f"{self._orders.health_timeout_s:g} s"
                raise DeployError(f"{pipeline} has not answered the smallest request within {limit}") from None
            except RequestRejected:
                continue  # it answers, and that was the question
            except ClientError as error:
                raise DeployError(f"{pipeline}: {error}") from error

    async def _probe(self, pipeline: str) -> None:
        fields, client = smallest(pipeline), self._connected()
        if fields is not None:
            await self._caller(pipeline)(fields)
            return
        signature = await client._signature(pipeline, self._orders.health_timeout_s)
        if not signature.is_decoupled:
            await client.infer(pipeline, zeros(signature))
            return
        async with aclosing(client.stream(pipeline, zeros(signature))) as parts:
            await anext(parts, None)

    async def _sent_events(
        self, pipeline: str, fields: Mapping[str, Any], headers: Mapping[str, str]
    ) -> AsyncIterator[str]:
        """Server-sent events; an error that comes in the middle is the last one."""
        try:
            events = aiter(self.stream(pipeline, fields))
            with traced(headers):  # the request goes out with the first event that is asked for
                event = await anext(events, None)
            while event is not None:
                yield f"data: {json.dumps(event, ensure_ascii=False)}\n\n"
                event = await anext(events, None)
        except (RowError, ClientError) as error:
            yield f"data: {json.dumps({'event': 'error', 'error': str(error), 'status': status_of(error)})}\n\n"

    def _caller(self, pipeline: str) -> Caller:
        if pipeline not in self._orders.pipelines:
            raise RowError(f"{pipeline}: not served here; {', '.join(self._orders.pipelines)} are")
        if pipeline not in self._callers:
            self._callers[pipeline] = Caller(self._connected(), pipeline, base=None)
        return self._callers[pipeline]

    def _connected(self) -> "AsyncClient":
        """The client; made when first needed, in the event loop that needs it."""
        from clients import connect_async

        if self._client is None:
            self._client = connect_async(f"grpc://{self._server.grpc}")
        return self._client

    def __del__(self) -> None:
        server = getattr(self, "_server", None)
        if server is not None:
            with contextlib.suppress(Exception):
                server.stop()


def assigned_gpus() -> list[str]:
    """The GPUs that Ray has given to this process: numbers or UUIDs."""
    import ray

    return [str(one) for one in ray.get_runtime_context().get_accelerator_ids().get("GPU", [])]


def status_of(error: Exception) -> int:
    """The HTTP status that says the same."""
    if isinstance(error, ValueError):
        return 400
    return next((status for kind, status in STATUS if isinstance(error, kind)), 502)


def build(args: Mapping[str, Any]) -> serve.Application:
    """The application of a config file; its `args` are Orders."""
    orders = orders_of(args)
    return serve.deployment(name=DEPLOYMENT, **options_of(orders))(Triton).bind(orders)
