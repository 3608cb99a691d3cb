"""Loading and unloading by the server's management API, with its key."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

import tritonclient.grpc as triton
from tritonclient.utils import InferenceServerException

from release.errors import LoadError

HEADER = "triton-grpc-protocol-tritonkit-key"  # the prefix is Triton's
LOAD_WITHIN_S = 600.0
READY_WITHIN_S = 30.0
CLOSED = "This protocol is restricted"
ADVICE_CLOSED = "Give the key with --key-file, or TRITONKIT_MANAGEMENT_KEY, to this command and to `tritonkit serve`."
ADVICE_ABSENT = "Start it with: tritonkit serve"


class Manager:
    """One server. address: host:port of its gRPC endpoint."""

    def __init__(self, address: str, key: str) -> None:
        self._address = address
        self._client = triton.InferenceServerClient(address)
        self._headers = {HEADER: key} if key else {}

    def load(self, model: str) -> None:
        """Loads a model, or loads it anew if its folder changed; returns when it is ready.

        Raises:
            LoadError: it doesn't load; what was loaded of it before still answers.
        """
        with self._asking(model):
            self._client.load_model(model, headers=self._headers, client_timeout=LOAD_WITHIN_S)

    def unload(self, model: str) -> None:
        """Unloads a model; nothing if it isn't loaded."""
        with self._asking(model):
            self._client.unload_model(model, headers=self._headers, client_timeout=LOAD_WITHIN_S)

    def wait_for_version(self, model: str, version: int) -> None:
        """Returns when this version answers.

        Raises:
            LoadError: it doesn't within half a minute.
        """
        end = time.monotonic() + READY_WITHIN_S
        while not self._is_ready(model, version):
            if time.monotonic() > end:
                found = f"version {version} isn't ready after {READY_WITHIN_S:g} s"
                raise LoadError(f"{model} on {self._address}", found)
            time.sleep(0.05)

    def close(self) -> None:
        self._client.close()

    def _is_ready(self, model: str, version: int) -> bool:
        with self._asking(model):
            return bool(self._client.is_model_ready(model, str(version)))

    @contextlib.contextmanager
    def _asking(self, model: str) -> Iterator[None]:
        try:
            yield
        except InferenceServerException as error:
            words = str(error.message())
            where = f"{model} on {self._address}"
            if words.startswith(CLOSED):
                raise LoadError(where, "the server's management is closed to us", "", ADVICE_CLOSED) from error
            absent = error.status() == "StatusCode.UNAVAILABLE"
            raise LoadError(where, words, "", ADVICE_ABSENT if absent else "") from error
