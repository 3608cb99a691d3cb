"""What people ask is their own: it is in no log, and in no metric."""

from __future__ import annotations

import urllib.request
from typing import Any

import httpx
import pytest

pytestmark = pytest.mark.server

SECRET = "aardvark7253"
KEY = "key of a private test"


def test_what_is_asked_is_written_nowhere(served: Any, start_gateway: Any) -> None:
    headers = {"Authorization": f"Bearer {KEY}"}
    with start_gateway(environment={"TRITONKIT_API_KEYS": KEY}) as gateway:
        for sampling in ({}, {"temperature": -1}, {SECRET: 1}):
            body = {"model": "llm", "messages": [{"role": "user", "content": SECRET}], "max_tokens": 4, **sampling}
            httpx.post(f"{gateway.api}/chat/completions", json=body, headers=headers, timeout=30)
        httpx.get(f"{gateway.api}/{SECRET}", headers=headers)
        metrics = httpx.get(f"{gateway.url}/metrics", headers=headers).text
        _, errors = gateway.stop()
    with urllib.request.urlopen(served.metrics, timeout=10) as answer:
        metrics += answer.read().decode()
    log = served.log_file.read_text(encoding="utf-8", errors="replace")
    for place in (metrics, errors, log):
        assert SECRET not in place and KEY not in place
