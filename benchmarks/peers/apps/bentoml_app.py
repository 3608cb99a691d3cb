"""BentoML: a service with an adaptively batched API.

    PEERS_SERVICE=NAME bentoml serve benchmarks.peers.apps.bentoml_app:Served

A batched API takes lists: bodies come as JSON, `{"bodies": ["base64"]}`. What is not batched takes the raw bytes.
"""

import base64
import os
from pathlib import Path
from typing import Annotated, Any

import bentoml
from bentoml.validators import ContentType

from benchmarks.peers.work.services import SERVICES

NAME = os.environ["PEERS_SERVICE"]
SERVICE = SERVICES[NAME]
QUIET = {"access": {"enabled": False}}  # no line for each request: the others write none either

if SERVICE.most > 1:

    @bentoml.service(workers=1, traffic={"timeout": 120, "concurrency": 64}, logging=QUIET)
    class Served:
        """The service of this process."""

        def __init__(self) -> None:
            self._work = SERVICE.load()

        @bentoml.api(batchable=True, max_batch_size=SERVICE.most, max_latency_ms=60_000, route=f"/{NAME}")
        def answer(self, bodies: list[str]) -> list[Any]:
            return self._work.batch([SERVICE.read(base64.b64decode(body)) for body in bodies])

else:

    @bentoml.service(workers=1, traffic={"timeout": 120}, logging=QUIET)
    class Served:
        """The service of this process."""

        def __init__(self) -> None:
            self._work = SERVICE.load()

        @bentoml.api(route=f"/{NAME}")
        def answer(self, body: Annotated[Path, ContentType("application/octet-stream")], /) -> Any:
            return self._work.batch([SERVICE.read(body.read_bytes())])[0]
