"""A running server, as far as tuning needs more of it than its clients do: configs, loading anew, processor time."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tuning.errors import TuningError

if TYPE_CHECKING:
    from embedded import EmbeddedServer

LOAD_LIMIT_S = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """Addresses as host:port; `pid` of its process where that runs on this machine, else 0."""

    http: str
    grpc: str
    pid: int = 0

    def config(self, model: str) -> dict[str, Any]:
        """The config that a model is served with."""
        found: dict[str, Any] = self._ask("GET", f"/v2/models/{model}/config")
        return found

    def load(self, model: str, config: Mapping[str, Any] | None = None) -> None:
        """Load a model anew, with another config or with its file's; files stay as they are. Returns when it answers.

        The server must run with --model-control-mode=explicit. Ensembles over the model are loaded again by it.
        """
        told = {"parameters": {"config": json.dumps(config)}} if config is not None else {}
        self._ask("POST", f"/v2/repository/models/{model}/load", told)

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        connection = http.client.HTTPConnection(self.http, timeout=LOAD_LIMIT_S)
        try:
            connection.request(method, path, None if body is None else json.dumps(body))
            answer = connection.getresponse()
            text = answer.read()
        except OSError as error:
            raise TuningError(self.http, str(error), "a running server is needed", "Look into its log") from error
        finally:
            connection.close()
        if answer.status != 200:
            words = text.decode(errors="replace")
            raise TuningError(f"{self.http}{path}", words, "an answer is needed", "Correct what the server says")
        return json.loads(text) if text else {}


def served(server: EmbeddedServer) -> Served:
    """An embedded server that runs."""
    return Served(http=server.http, grpc=server.grpc, pid=server.server_pid())
