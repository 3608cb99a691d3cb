"""The wrapper that most articles show: models loaded once, a plain endpoint, one request at a time."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import uvicorn
from fastapi import Depends, FastAPI, Request, Response

from benchmarks.peers.work.services import SERVICES


async def body_of(request: Request) -> bytes:
    """The bytes as they came."""
    return await request.body()


def make_app(name: str) -> FastAPI:
    """The application. Its endpoint is a plain function: FastAPI calls it in a thread."""
    app, service = FastAPI(), SERVICES[name]
    work = service.load()

    @app.post(f"/{name}")
    def answer(body: Annotated[bytes, Depends(body_of)]) -> Response:
        return Response(json.dumps(work.batch([service.read(body)])[0]), media_type="application/json")

    return app


if __name__ == "__main__":
    uvicorn.run(make_app(sys.argv[2]), host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
