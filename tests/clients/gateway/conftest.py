"""The gateway in front of the real server, as a person starts it."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from embedded import EmbeddedServer

sys.path.insert(0, str(Path(__file__).parent))

from gateway_process import Gateway

Starter = Callable[..., "contextlib.AbstractContextManager[Gateway]"]


@pytest.fixture(scope="session")
def start_gateway(served: EmbeddedServer) -> Starter:
    """Starts a gateway with further options: `with start_gateway("--most-in-flight", "2") as gateway`."""

    @contextlib.contextmanager
    def start(*options: str, environment: dict[str, str] | None = None) -> Iterator[Gateway]:
        gateway = Gateway(f"grpc://{served.grpc}", *options, environment=environment)
        try:
            yield gateway
        finally:
            gateway.stop()

    return start


@pytest.fixture(scope="session")
def gateway(start_gateway: Starter) -> Iterator[Gateway]:
    """One gateway for all tests that leave it as it is."""
    with start_gateway("--alias", "whisper-1=transcribe", "--alias", "gpt-4o=assistant") as one:
        yield one


@pytest.fixture(scope="session")
def recording(checkout: Path) -> Path:
    return checkout / "samples" / "sense_and_sensibility.flac"


@pytest.fixture(scope="session")
def picture(checkout: Path) -> Path:
    return checkout / "samples" / "coffee.jpg"
