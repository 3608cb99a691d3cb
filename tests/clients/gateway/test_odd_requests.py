"""Random requests: whatever comes, the answer is an error that its sender understands or an answer, never a failure."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import AsyncGenerator
from typing import Any

import httpx
import numpy as np
import pytest
from engine_process import model_processes

from clients.endpoint import Endpoint
from clients.gateway.app import make_app
from clients.gateway.settings import Settings
from clients.signature import Signature
from clients.tensors import Request, Response
from fuzz.inputs import Fuzzer
from fuzz.odd import changed

COUNT = 2000
ASKED = 150
CHAT = {"model": "llm", "messages": [{"role": "user", "content": [{"type": "text", "text": "Hello"}]}]}


class Answering:
    """A server that answers everything: what fails then is the gateway's own."""

    endpoint = Endpoint(scheme="grpc", host="127.0.0.1", port=1)

    async def infer(self, request: Request, timeout_s: float) -> Response:
        text = {"transcribe": ("TRANSCRIPT", "a"), "detect": ("DETECTIONS", '{"width":1,"height":1,"detections":[]}')}
        name, value = text.get(request.model, ("MESSAGES", '[{"role": "user", "content": "a"}]'))
        return Response(outputs={name: np.array([value.encode()], dtype=object)})

    async def stream(self, request: Request, timeout_s: float) -> AsyncGenerator[Response, None]:
        yield Response(outputs={"TEXT": np.array([b"a"], dtype=object)}, is_final=False)
        yield Response(outputs={"FINISH_REASON": np.array([b"stop"], dtype=object)}, is_final=True)

    async def signature(self, model: str, timeout_s: float) -> Signature:
        return Signature(model=model, inputs={}, max_batch_size=0, is_decoupled=True)

    async def is_ready(self, model: str, timeout_s: float) -> bool:
        return True

    async def close(self) -> None:
        pass


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions"])
def test_no_body_makes_the_gateway_fail(path: str) -> None:
    chance = random.Random(path)
    good = CHAT if "chat" in path else {"model": "llm", "prompt": ["a"], "n": 2}

    async def ask_all() -> Counter[int]:
        app = make_app(Settings(), Answering)  # type: ignore[arg-type]
        statuses: Counter[int] = Counter()
        async with lifespan(app), client_of(app) as client:
            for _ in range(COUNT):
                body: Any = good
                for _ in range(chance.randrange(4)):
                    body = changed(body, chance)
                sent = json.dumps(body)
                answer = await client.post(path, content=sent, headers={"content-type": "application/json"})
                assert answer.status_code in (200, 400, 404), (sent, answer.text)
                check_form(answer)
                statuses[answer.status_code] += 1
        return statuses

    statuses = asyncio.run(ask_all())
    assert min(statuses.values()) > COUNT / 100, f"{statuses}: the bodies are not odd enough, or too odd"


@pytest.mark.parametrize("path", ["/v1/audio/transcriptions", "/v1/audio/translations", "/v1/detections"])
def test_no_form_makes_the_gateway_fail(path: str) -> None:
    chance = random.Random(path)
    names = ("file", "model", "language", "stream", "temperature", "response_format", "confidence", "iou", "prompt")
    values = ("", "a", "transcribe", "detect", "0", "-1", "nan", "1e999", "true", "srt", "\x00", "é")

    async def ask_all() -> Counter[int]:
        app = make_app(Settings(), Answering)  # type: ignore[arg-type]
        statuses: Counter[int] = Counter()
        async with lifespan(app), client_of(app) as client:
            for _ in range(COUNT // 20):
                fields = {name: chance.choice(values) for name in chance.sample(names, chance.randrange(5))}
                fields.setdefault("model", "detect" if "detections" in path else "transcribe")
                data = chance.randbytes(chance.choice((0, 1, 50, 5000)))
                files = {"file": (chance.choice(("a.wav", "\x00", "")), data)}
                answer = await client.post(path, data=fields, files=files)
                assert answer.status_code in (200, 400, 404), (fields, answer.text)
                check_form(answer)
                statuses[answer.status_code] += 1
        return statuses

    assert asyncio.run(ask_all())[400] > 0


@pytest.mark.server
def test_nothing_odd_breaks_the_real_server(served: Any, gateway: Any) -> None:
    """A short run of `make fuzz-inputs`, to the gateway alone, one after the other.

    Odd tensors, and many damaged pictures at once, end Triton 2.51 itself now and then (docs/reliability.md).
    """
    before = model_processes(served)
    found = Fuzzer(gateway.url, None, seed=1, callers=1).run(ASKED)
    assert found.sent == ASKED and not found.wrong, found.wrong
    assert model_processes(served) == before


def check_form(answer: httpx.Response) -> None:
    if answer.status_code != 200:
        assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
    assert '"internal_error"' not in answer.text


def client_of(app: Any) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost")


class lifespan:
    """Starts and ends an ASGI application, as a server does."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self._to_app: asyncio.Queue[Any] = asyncio.Queue()
        self._from_app: asyncio.Queue[Any] = asyncio.Queue()

    async def __aenter__(self) -> None:
        self._task = asyncio.create_task(
            self._app({"type": "lifespan", "asgi": {"version": "3.0"}}, self._to_app.get, self._from_app.put)
        )
        await self._to_app.put({"type": "lifespan.startup"})
        assert (await self._from_app.get())["type"] == "lifespan.startup.complete"

    async def __aexit__(self, *_: object) -> None:
        await self._to_app.put({"type": "lifespan.shutdown"})
        await self._task
