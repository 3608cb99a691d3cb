"""Responses: JSON, and server-sent events whose work ends when the response does."""

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from clients.errors import ClientError
from clients.gateway.problems import Problem, problem_from
from clients.gateway.upstream import dumps

DONE = b"data: [DONE]\n\n"
log = logging.getLogger("tritonkit.gateway")


def json_response(value: Any) -> Response:
    """A value as JSON."""
    return Response(dumps(value), media_type="application/json")


def event(value: Any) -> bytes:
    """One server-sent event."""
    return f"data: {dumps(value)}\n\n".encode("ascii")


class EventStream(Response):
    """Sends events as they come; those that the source gives together, together: each sending wakes the caller.

    A problem in the middle becomes a last event with OpenAI's error object: the status was sent long before. The
    source is closed whatever happens, a cancelled task included, so that nothing goes on working for nobody.
    """

    def __init__(self, source: AsyncGenerator[Sequence[Any], None], *, ends_with_done: bool = True) -> None:
        super().__init__(media_type="text/event-stream", headers={"Cache-Control": "no-store"})
        del self.headers["content-length"]
        self._source, self._ends_with_done = source, ends_with_done

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        try:
            await send(start)
            async for part, is_last in self._parts():
                await send({"type": "http.response.body", "body": part, "more_body": not is_last})
        finally:
            await self._source.aclose()

    async def _parts(self) -> AsyncIterator[tuple[bytes, bool]]:
        end = DONE if self._ends_with_done else b""
        try:
            async for values in self._source:
                yield b"".join(map(event, values)), False
        except ClientError as error:
            end = event(problem_from(error).as_json())
        except Problem as problem:
            end = event(problem.as_json())
        except Exception:
            log.exception("a stream failed")
            end = event(Problem(500, "the gateway failed; its log says why.", code="internal_error").as_json())
        yield end, True


async def begun(source: AsyncGenerator[Any, None]) -> AsyncGenerator[Any, None]:
    """The same source after its first value is there: what fails before that still gets a status of its own."""
    try:
        first = await anext(source)
    except StopAsyncIteration:
        return _rest((), source)
    except BaseException:
        await source.aclose()
        raise
    return _rest((first,), source)


async def _rest(first: tuple[Any, ...], source: AsyncGenerator[Any, None]) -> AsyncGenerator[Any, None]:
    try:
        for value in first:
            yield value
        async for value in source:
            yield value
    finally:
        await source.aclose()
