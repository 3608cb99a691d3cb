"""The command itself, and the gateway while no server answers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from gateway_process import Gateway

NOBODY = "grpc://127.0.0.1:1"
CHAT = {"model": "llm", "messages": [{"role": "user", "content": "Hello"}]}
KEY = "0123456789abcdef of the test's own"


@pytest.fixture(scope="module")
def alone() -> Iterator[Any]:
    """A gateway in front of nobody."""
    gateway = Gateway(NOBODY, "--max-body-mib", "1")
    yield gateway
    gateway.stop()


def test_health_says_that_nobody_answers(alone: Any) -> None:
    answer = httpx.get(f"{alone.url}/health")
    assert answer.status_code == 503 and answer.json()["status"] == "not ready"
    assert httpx.get(f"{alone.api}/models").json() == {"object": "list", "data": []}


def test_a_request_is_told_to_try_again(alone: Any) -> None:
    with openai.OpenAI(base_url=alone.api, api_key="none", max_retries=0) as client:
        for stream in (False, True):
            with pytest.raises(openai.InternalServerError) as caught:
                client.chat.completions.create(**CHAT, stream=stream)
            assert caught.value.status_code == 503 and caught.value.code == "server_unreachable"
            assert caught.value.response.headers["retry-after"] == "1"


@pytest.mark.parametrize(
    ("path", "sent", "status"),
    [
        ("/v1/chat/completions", {"content": b"no json"}, 400),
        ("/v1/chat/completions", {"content": b"[" * 100_000, "headers": {"content-type": "application/json"}}, 400),
        ("/v1/chat/completions", {"json": []}, 400),
        ("/v1/chat/completions", {"json": {**CHAT, "stream": "perhaps"}}, 400),
        ("/v1/chat/completions", {"json": {**CHAT, "stream_options": {"include_usage": True}}}, 400),
        ("/v1/chat/completions", {"json": {**CHAT, "stream_options": {"include_obfuscation": True}}}, 400),
        ("/v1/completions", {"json": {"model": "llm", "prompt": "a", "stream_options": {}}}, 400),
        ("/v1/chat/completions", {"json": {**CHAT, "model": "\ud800"}}, 404),
        ("/v1/chat/completions", {"content": b"x" * (2**20 + 1)}, 413),
        ("/v1/completions", {"json": {"model": "llm", "prompt": [1, 2]}}, 400),
        ("/v1/audio/transcriptions", {"data": {"model": "transcribe"}}, 400),
        ("/v1/audio/transcriptions", {"json": {}}, 400),
        ("/v1/nothing", {"json": {}}, 404),
        ("/v1/models", {"json": {}}, 405),
    ],
)
def test_every_error_has_the_shape_of_openai(alone: Any, path: str, sent: dict[str, Any], status: int) -> None:
    if "json" in sent:
        sent = {"content": json.dumps(sent["json"]), "headers": {"content-type": "application/json"}}
    answer = httpx.post(alone.url + path, **sent)
    assert answer.status_code == status
    assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
    assert answer.json()["error"]["message"]


def test_the_page_brings_all_of_itself(alone: Any) -> None:
    answer = httpx.get(f"{alone.url}/")
    assert "http" not in answer.text.partition("<body>")[2]
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    for name in ("page.css", "page.js"):
        assert name in answer.text
        assert httpx.get(f"{alone.url}/{name}").status_code == 200
    assert httpx.get(f"{alone.url}/%2e%2e/settings.py").status_code == 404


def test_no_documentation_page_loads_anything_from_elsewhere(alone: Any) -> None:
    assert httpx.get(f"{alone.url}/docs").status_code == httpx.get(f"{alone.url}/redoc").status_code == 404
    assert "/v1/chat/completions" in httpx.get(f"{alone.url}/openapi.json").json()["paths"]


def test_a_browser_of_an_allowed_site_may_ask_and_no_other() -> None:
    gateway = Gateway(NOBODY, "--allow-origin", "https://app.example")
    try:
        asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
        allowed = httpx.options(f"{gateway.api}/models", headers={"Origin": "https://app.example", **asked})
        assert allowed.headers["access-control-allow-origin"] == "https://app.example"
        other = httpx.get(f"{gateway.api}/models", headers={"Origin": "https://evil.example"})
        assert other.status_code == 403 and "access-control-allow-origin" not in other.headers
    finally:
        gateway.stop()


def test_keys_come_from_a_file_and_the_environment_and_are_shown_nowhere(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(f"# the first\n{KEY}\n")
    other = "fedcba9876543210"
    gateway = Gateway(NOBODY, "--api-key-file", str(file), environment={"TRITONKIT_API_KEYS": other})
    try:
        statuses = [
            httpx.get(f"{gateway.api}/models", headers={"Authorization": f"Bearer {key}"}).status_code
            for key in (KEY, other, "neither")
        ]
        assert statuses == [200, 200, 401]
        arguments = Path(f"/proc/{gateway.process.pid}/cmdline").read_bytes()
        assert KEY.encode() not in arguments and other.encode() not in arguments
    finally:
        _, errors = gateway.stop()
    assert KEY not in errors and other not in errors


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--host", "0.0.0.0"], "--without-keys"),
        (["--server", "http://127.0.0.1:8000"], "grpc://127.0.0.1:8001"),
        (["--server", "ftp://a"], "grpc://host:port"),
        (["--alias", "whisper-1"], "NAME=MODEL"),
        (["--api-key-file", "/does/not/exist"], "API keys"),
        (["--port", "99999"], "--port"),
    ],
)
def test_wrong_usage_is_told_before_anything_starts(options: list[str], words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "clients.gateway", "--port", "0", *options], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2, done.stdout + done.stderr
    assert words in done.stderr and "Traceback" not in done.stderr


def test_a_port_that_is_taken_is_named(alone: Any) -> None:
    port = alone.url.rpartition(":")[2]
    done = subprocess.run(
        [sys.executable, "-m", "clients.gateway", "--port", port], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1 and f"--port {port}" in done.stderr


def test_a_signal_ends_it_in_good_order() -> None:
    gateway = Gateway(NOBODY)
    os.kill(gateway.process.pid, signal.SIGTERM)
    status, errors = gateway.stop()
    assert status == 0 and errors == ""
