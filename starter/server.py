"""A Triton server's management endpoints, by its HTTP port."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from starter.errors import LoadError, ServerGone

POLL_S = 0.1
TELLS_WITHIN_S = 60.0  # it answers only between two loads
PYTHON_BACKENDS = ("python", "vllm")


@dataclass(frozen=True, kw_only=True)
class Server:
    """A server.

    Attributes:
        address: `host:port` of its HTTP endpoint.
        headers: what goes with every request, such as the key of restricted endpoints.
        load_timeout_s: how long one model may take to load.
    """

    address: str
    headers: Mapping[str, str] = field(default_factory=dict)
    load_timeout_s: float = 1800.0

    def is_live(self) -> bool:
        """Whether it answers at all."""
        return self._answers("/v2/health/live")

    def is_ready(self, model: str) -> bool:
        """Whether a model can be asked."""
        return self._answers(f"/v2/models/{quote(model)}/ready")

    def load(self, model: str) -> None:
        """Load a model; returns once it is ready, warmed by its own `model_warmup`.

        Raises:
            LoadError: the server refused; with its words.
            ServerGone: it does not answer any more.
        """
        status, text = self._ask("POST", f"/v2/repository/models/{quote(model)}/load", self.load_timeout_s)
        if status != 200:
            raise LoadError(f"{model}: does not load: {text}")
        if not self.is_ready(model):
            raise LoadError(f"{model}: loaded, and yet not ready. Look into the server's log.")

    def unload(self, model: str) -> None:
        """Unload a model: no new request gets to it. Its processes may take a moment to end.

        A model whose process died with a request in it stays in the state UNLOADING for ever, and can be loaded again
        all the same (seen on 2.51).

        Raises:
            LoadError: the server refused.
            ServerGone: it does not answer any more.
        """
        status, text = self._ask("POST", f"/v2/repository/models/{quote(model)}/unload", self.load_timeout_s)
        if status != 200:
            raise LoadError(f"{model}: does not unload: {text}")

    def processes(self) -> dict[str, int]:
        """How many processes each Python model that is called ready has, or must have: one for each instance.

        Raises:
            ServerGone: the server does not answer.
        """
        found: dict[str, int] = {}
        for one in self._told("POST", "/v2/repository/index"):
            if one.get("state") == "READY":
                name, version = one["name"], one.get("version", "1")
                config = self._told("GET", f"/v2/models/{quote(name)}/versions/{quote(version)}/config")
                if config.get("backend") in PYTHON_BACKENDS:
                    found[name] = found.get(name, 0) + instances(config)
        return found

    def wait_live(self, is_running: Callable[[], bool], timeout_s: float) -> None:
        """Return once the server answers.

        Raises:
            ServerGone: it ended, or the time is over.
        """
        deadline = time.monotonic() + timeout_s
        while not self.is_live():
            if not is_running():
                raise ServerGone("the server ended before it answered. Its last lines above say why.")
            if time.monotonic() > deadline:
                raise ServerGone(f"the server at {self.address} does not answer after {timeout_s:g} s.")
            time.sleep(POLL_S)

    def _told(self, method: str, path: str) -> Any:
        status, text = self._ask(method, path, TELLS_WITHIN_S)
        if status != 200:
            raise ServerGone(f"the server at {self.address} does not tell {path}: {text}")
        return json.loads(text)

    def _answers(self, path: str) -> bool:
        try:
            return self._request("GET", path, 10.0)[0] == 200
        except OSError:
            return False

    def _ask(self, method: str, path: str, timeout_s: float) -> tuple[int, str]:
        try:
            return self._request(method, path, timeout_s)
        except OSError as error:
            raise ServerGone(f"the server at {self.address} does not answer: {error}") from error

    def _request(self, method: str, path: str, timeout_s: float) -> tuple[int, str]:
        connection = http.client.HTTPConnection(self.address, timeout=timeout_s)
        try:
            body = "{}" if method == "POST" else None
            connection.request(method, path, body=body, headers=dict(self.headers))
            response = connection.getresponse()
            text = response.read().decode("utf-8", "replace")
        except http.client.HTTPException as error:
            raise OSError(str(error) or type(error).__name__) from error
        finally:
            connection.close()
        try:
            return response.status, json.loads(text)["error"]
        except (ValueError, KeyError, TypeError):
            return response.status, text


def instances(config: Mapping[str, Any]) -> int:
    """How many instances of a model a config, as the server completes and tells it, has."""
    groups = config.get("instance_group", ())
    return sum(group.get("count", 1) * max(1, len(group.get("gpus", ()))) for group in groups)
