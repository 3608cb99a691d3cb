"""Odd requests to a gateway. In: a `random.Random`. Out: what was sent, and what is wrong with the answer, if anything.

Whatever comes, the answer is a right one or an error of the caller's in OpenAI's form; no status of 500 or more.
"""

from __future__ import annotations

import base64
import json
import random
from pathlib import Path
from typing import Any

import httpx

from fuzz.odd import KEYS, MORE_KEYS, changed, damaged

SAMPLES = Path(__file__).parents[1] / "samples"
PICTURE = (SAMPLES / "coffee.jpg").read_bytes()
RECORDING = (SAMPLES / "sense_and_sensibility.flac").read_bytes()
WRITING = {"/v1/chat/completions": "chat", "/v1/completions": "prompt"}
FORMS = ("/v1/detections", "/v1/audio/transcriptions", "/v1/audio/translations")
FIELDS = ("model", "language", "stream", "temperature", "response_format", "confidence", "iou", "prompt")
FIELD_VALUES = ("", "a", "transcribe", "detect", "0", "-1", "nan", "1e999", "true", "srt", "\x00", "é", "en")
LIMIT_S = 90.0


def ask(client: httpx.Client, chance: random.Random) -> tuple[str, str]:
    """What was asked, in a few words, and what is wrong with the answer; "" if nothing."""
    make = chance.choices((_body, _raw, _form, _elsewhere), (6, 1, 3, 1))[0]
    method, path, options = make(chance)
    try:
        answer = client.request(method, path, timeout=LIMIT_S, **options)
    except httpx.HTTPError as error:
        return describe(path, options), f"no answer: {error!r}"
    return describe(path, options), wrong_with(answer)


def wrong_with(answer: httpx.Response) -> str:
    """Why this answer must not be; "" if it may."""
    if answer.status_code >= 500:
        return f"status {answer.status_code}: {answer.text[:500]}"
    if answer.status_code >= 400 and answer.request.method != "HEAD" and "message" not in error_of(answer):
        return f"status {answer.status_code}, without an error in OpenAI's form: {answer.text[:200]}"
    # The status of a stream was sent before it failed.
    return f"in a stream: {answer.text[-500:]}" if '"internal_error"' in answer.text else ""


def error_of(answer: httpx.Response) -> dict[str, Any]:
    try:
        found = answer.json()["error"]
    except (ValueError, KeyError, TypeError):
        return {}
    return found if isinstance(found, dict) else {}


def _body(chance: random.Random) -> tuple[str, str, dict[str, Any]]:
    path = chance.choice(tuple(WRITING))
    body: Any = {"model": "llm", "max_tokens": 4, "stream": chance.random() < 0.3}
    body |= {"messages": [_message(chance)]} if WRITING[path] == "chat" else {"prompt": ["a"], "n": 2}
    for _ in range(chance.randrange(4)):
        body = changed(body, chance, KEYS + MORE_KEYS)
    return "POST", path, {"content": json.dumps(body), "headers": {"content-type": "application/json"}}


def _message(chance: random.Random) -> dict[str, Any]:
    """A question, now and then with a damaged picture."""
    parts: list[dict[str, Any]] = [{"type": "text", "text": "Hello"}]
    if chance.random() < 0.2:
        picture = base64.b64encode(damaged(PICTURE, chance)).decode()
        parts.append({"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{picture}"}})
    return {"role": chance.choice(("user", "system", "assistant", "tool")), "content": parts}


def _raw(chance: random.Random) -> tuple[str, str, dict[str, Any]]:
    """Bytes that are no JSON, or in another coding, or nested deeply."""
    good = json.dumps({"model": "llm", "max_tokens": 2, "prompt": "a"}).encode()
    body = chance.choice(
        (
            chance.randbytes(50),
            damaged(good, chance),
            b"[" * chance.choice((10, 5000)),
            b"",
            good.decode().encode("utf-16"),
        )
    )
    kind = chance.choice(("application/json", "text/plain", "", "multipart/form-data", "application/json; charset=x"))
    return "POST", chance.choice((*WRITING, *FORMS)), {"content": body, "headers": {"content-type": kind}}


def _form(chance: random.Random) -> tuple[str, str, dict[str, Any]]:
    path = chance.choices(FORMS, (8, 1, 1))[0]
    fields = {name: chance.choice(FIELD_VALUES) for name in chance.sample(FIELDS, chance.randrange(4))}
    if chance.random() < 0.9:
        fields["model"] = "detect" if "detections" in path else "transcribe"
    data = damaged(PICTURE if "detections" in path or chance.random() < 0.3 else RECORDING, chance)
    name = chance.choice(("a.wav", "a.jpg", "\x00", "", "../../a", "é" * 300))
    return "POST", path, {"data": fields, "files": {"file": (name, data)}}


def _elsewhere(chance: random.Random) -> tuple[str, str, dict[str, Any]]:
    """Methods and paths that may not be there."""
    method = chance.choice(("GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "TRACE", "PATCH"))
    path = chance.choice(
        ("/", "/v1/models", "/v1/models/..%2f..%2fetc", "/metrics", "/health", "/v1/", "/%00", "/page.js")
    )
    return method, path + chance.choice(("", "?x=%ff", "/", "/../../etc/passwd")), {}


def describe(path: str, options: dict[str, Any]) -> str:
    return f"{path} {repr(options)[:300]}"
