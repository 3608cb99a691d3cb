"""The served files of `llm` importable as in the server, and a real server with the small Llama behind it."""

import json
import sys
from pathlib import Path

import pytest

from embedded import EmbeddedServer

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(HERE), str(ROOT / "model_repository" / "llm" / "1")]

from llm_serving import SERVED, Llm  # noqa: E402


@pytest.fixture(scope="session")
def llm_server(served: EmbeddedServer) -> Llm:
    """The model `llm` of the shipped repository."""
    return Llm(served.grpc, served.http, json.loads((SERVED / "model.json").read_text()))
