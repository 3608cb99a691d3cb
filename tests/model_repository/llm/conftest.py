"""The served files of `llm` importable as in the server, and a real server with the small Llama behind it."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(HERE), str(ROOT / "model_repository" / "llm" / "1")]

from llm_serving import Llm, write_llm  # noqa: E402


@pytest.fixture(scope="session")
def llm_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Llm]:
    """The real server with the small Llama, started once for all tests."""
    from embedded.server import EmbeddedServer

    repository = write_llm(tmp_path_factory.mktemp("llm_repository"))
    cache = Path(os.environ.get("TRITONKIT_CACHE", ROOT / ".cache"))
    with EmbeddedServer(repository, entry=["llm"], cache=cache) as server:
        yield Llm(server.grpc)
