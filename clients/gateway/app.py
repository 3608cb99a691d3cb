"""The routes. Made by make_app(), which contacts nothing: the server may come up later."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, File, Form, UploadFile
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from clients.endpoint import endpoint
from clients.errors import ClientError, EndpointError
from clients.gateway.audio import AudioAsk, answer_audio
from clients.gateway.bodies import ChatBody, CompletionBody
from clients.gateway.chat import answer_chat
from clients.gateway.completions import answer_completion
from clients.gateway.detections import answer_detections
from clients.gateway.guard import App, Guard
from clients.gateway.metrics import Metrics
from clients.gateway.names import HEARING, SEEING, SERVED, WRITING, check_model, ready_names
from clients.gateway.problems import ERROR, Problem, problem_from
from clients.gateway.replies import json_response
from clients.gateway.room import USUAL, Room, learn_room
from clients.gateway.settings import Settings
from clients.gateway.upstream import Upstream
from clients.transports import AsyncTransport

PAGE = Path(__file__).parent / "page"
PAGE_FILES = {"/": "index.html", "/page.css": "page.css", "/page.js": "page.js"}
PAGE_HEADERS = {
    # Nothing from elsewhere, and nobody may show the page inside another.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' blob: data:; media-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
# What the OpenAPI page of the service says about answers beside JSON ones with status 200.
ERRORS: dict[int | str, dict[str, Any]] = {
    "default": {"description": "It failed, and why", "content": {"application/json": {"schema": ERROR}}}
}
STREAMED: dict[int | str, dict[str, Any]] = {200: {"content": {"text/event-stream": {}}}}
WRITTEN: dict[int | str, dict[str, Any]] = {200: {"content": {"text/event-stream": {}, "text/plain": {}}}}


def make_app(settings: Settings, transport: Callable[[], AsyncTransport] | None = None) -> App:
    """The ASGI application.

    Args:
        transport: makes the way to the server inside the event loop; gRPC to settings.server if None.
    """
    metrics = Metrics()
    room = Room(settings.most_in_flight or USUAL)
    lifespan = _lifespan(settings, room, transport or grpc_transport(settings.server))
    app = FastAPI(title="tritonkit gateway", docs_url=None, redoc_url=None, lifespan=lifespan, responses=ERRORS)
    app.state.settings, app.state.metrics = settings, metrics
    add_problem_handlers(app, settings)
    add_writing(app)
    add_hearing_and_seeing(app)
    add_operations(app)
    add_page(app)
    guarded: App = Guard(app, settings, metrics, room)
    if not settings.allowed_origins:
        return guarded
    return CORSMiddleware(
        guarded,
        allow_origins=list(settings.allowed_origins),
        allow_methods=["GET", "POST"],
        allow_headers=["*"],
    )


def _lifespan(settings: Settings, room: Room, transport: Callable[[], AsyncTransport]) -> Any:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        upstream = app.state.upstream = Upstream(transport(), settings.timeout_s, settings.chains)
        learning = None if settings.most_in_flight else asyncio.create_task(learn_room(room, upstream))
        yield
        if learning:
            learning.cancel()
        await upstream.close()

    return lifespan


def grpc_transport(server: str) -> Callable[[], AsyncTransport]:
    """Makes the way to the server.

    Raises:
        EndpointError: the address can't be used. HTTP can't stream, nor cancel.
    """
    where = endpoint(server)
    if where.scheme != "grpc":
        advice = f"Triton's gRPC port is usually one above: grpc://{where.host}:8001."
        raise EndpointError(str(where), "the gateway speaks gRPC alone", "grpc://host:port is needed", advice)

    def make() -> AsyncTransport:
        from clients.transports.grpc_aio import AsyncGrpcTransport

        return AsyncGrpcTransport(where)

    return make


def add_problem_handlers(app: FastAPI, settings: Settings) -> None:
    """Every way in which a request can fail becomes OpenAI's error object."""

    async def told(request: Request, error: Exception) -> Response:
        return as_problem(error).as_response(settings.retry_after_s)

    for kind in (Problem, ClientError, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, told)


def as_problem(error: Exception) -> Problem:
    """What a caller is told."""
    match error:
        case Problem():
            return error
        case ClientError():
            return problem_from(error)
        case RequestValidationError():
            first = error.errors()[0]
            param = ".".join(str(part) for part in first["loc"] if part != "body") or None
            words = f"{param or 'the body'}: {first['msg']}"
            return Problem(400, words, code="invalid_value", param=param)
        case HTTPException():
            return Problem(error.status_code, str(error.detail), code=None, headers=error.headers)
    return Problem(500, "the gateway failed; its log says why.", code="internal_error")


def add_writing(app: FastAPI) -> None:
    """The endpoints that write text."""

    @app.post("/v1/chat/completions", responses=STREAMED)
    async def chat(body: ChatBody, request: Request) -> Response:
        state = request.app.state
        check_model(body.model, WRITING, state.settings.aliases)
        return await answer_chat(body, state.upstream, state.settings, state.metrics)

    @app.post("/v1/completions", responses=STREAMED)
    async def completions(body: CompletionBody, request: Request) -> Response:
        state = request.app.state
        check_model(body.model, {"llm": ()}, state.settings.aliases)
        return await answer_completion(body, state.upstream, state.settings, state.metrics)


def add_hearing_and_seeing(app: FastAPI) -> None:
    """The endpoints that take a file."""
    known = {"file", "model", "language", "prompt", "response_format", "temperature", "stream"}
    listed = {"timestamp_granularities[]", "include[]"}

    async def hear(request: Request, file: UploadFile, model: str, task: str) -> Response:
        state = request.app.state
        check_model(model, HEARING, state.settings.aliases)
        form = await request.form()
        check_fields(set(form), known | listed)
        ask = AudioAsk(
            data=await file.read(),
            task=task,
            language=_text(form.get("language")),
            prompt=_text(form.get("prompt")),
            response_format=_text(form.get("response_format")) or "json",
            temperature=_number("temperature", form.get("temperature")),
            stream=_text(form.get("stream")) in ("true", "True", "1"),
            granularities=tuple(str(one) for one in form.getlist("timestamp_granularities[]")),
            include=tuple(str(one) for one in form.getlist("include[]")),
        )
        return await answer_audio(ask, state.upstream, state.settings)

    @app.post("/v1/audio/transcriptions", responses=WRITTEN)
    async def transcriptions(
        request: Request, file: Annotated[UploadFile, File()], model: Annotated[str, Form()]
    ) -> Response:
        return await hear(request, file, model, "transcribe")

    @app.post("/v1/audio/translations", responses=WRITTEN)
    async def translations(
        request: Request, file: Annotated[UploadFile, File()], model: Annotated[str, Form()]
    ) -> Response:
        return await hear(request, file, model, "translate")

    @app.post("/v1/detections")
    async def detections(
        request: Request, file: Annotated[UploadFile, File()], model: Annotated[str, Form()] = "detect"
    ) -> Response:
        state = request.app.state
        check_model(model, SEEING, state.settings.aliases)
        form = await request.form()
        check_fields(set(form), {"file", "model", "confidence", "iou"})
        thresholds = (_number(name, form.get(name)) for name in ("confidence", "iou"))
        confidence, iou = thresholds
        return json_response(await answer_detections(await file.read(), model, confidence, iou, state.upstream))


def check_fields(given: set[str], known: set[str]) -> None:
    """Raises Problem for a field that nobody reads."""
    unknown = sorted(given - known)
    if unknown:
        words = f"{unknown[0][:100]!a}: not known; the fields are {', '.join(sorted(known))}."
        raise Problem(400, words, code="unknown_parameter", param=ascii(unknown[0][:100]).strip("'"))


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _number(name: str, value: Any) -> float | None:
    try:
        number = None if value is None else float(value)
    except (TypeError, ValueError) as error:
        raise Problem(400, f"{name}: a number is needed.", code="invalid_value", param=name) from error
    if number is not None and not -1e9 < number < 1e9:
        raise Problem(400, f"{name}: a finite number is needed.", code="invalid_value", param=name)
    return number


def add_operations(app: FastAPI) -> None:
    """What tells how the service is."""

    @app.get("/v1/models")
    async def models(request: Request) -> Response:
        state = request.app.state
        names = ready_names(await state.upstream.are_ready(SERVED), state.settings.aliases)
        return json_response({"object": "list", "data": [model_json(name) for name in names]})

    @app.get("/v1/models/{name}")
    async def model(name: str, request: Request) -> Response:
        state = request.app.state
        names = ready_names(await state.upstream.are_ready(SERVED), state.settings.aliases)
        if name not in names:
            words = f"model: {name[:100]!a} is not served here; GET /v1/models lists what is."
            raise Problem(404, words, code="model_not_found", param="model")
        return json_response(model_json(name))

    @app.get("/health")
    async def health(request: Request) -> Response:
        is_ready = await request.app.state.upstream.are_ready(SERVED)
        status = "ok" if all(is_ready.values()) else "not ready"
        response = json_response({"status": status, "models": is_ready})
        response.status_code = 200 if all(is_ready.values()) else 503
        return response

    @app.get("/metrics", response_class=PlainTextResponse)
    async def metrics(request: Request) -> Response:
        return Response(request.app.state.metrics.text(), media_type="text/plain; version=0.0.4")


def model_json(name: str) -> dict[str, Any]:
    """One model of /v1/models."""
    return {"id": name, "object": "model", "created": STARTED, "owned_by": "tritonkit"}


STARTED = int(time.time())


def add_page(app: FastAPI) -> None:
    """The page for people."""
    for path, name in PAGE_FILES.items():

        async def page(file: str = name) -> Response:
            return FileResponse(PAGE / file, headers=PAGE_HEADERS)

        app.add_api_route(path, page, include_in_schema=False)
