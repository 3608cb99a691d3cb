"""The whole assistant of a peer: hear, see, make the prompt as the served template does, let a `vllm serve` answer.

Peers that bring no language model of their own put one behind them: this is how people combine them.
"""

from __future__ import annotations

import json
import os
import urllib.request
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from benchmarks.peers.work.hearing import Hearing
from benchmarks.peers.work.places import REPOSITORY, share_served_code
from benchmarks.peers.work.seeing import Detections, Seeing

share_served_code("prompt")

import prompt_messages  # noqa: E402

MAX_TOKENS = 96
LLM_VARIABLE = "PEERS_LLM"  # address of the `vllm serve`
LLM_MODEL = "llm"
Media = tuple[bytes, np.ndarray]  # a picture's file; samples float32 [n], mono, 16 kHz


class Both:
    """Hears and sees."""

    def __init__(self) -> None:
        self._hearing, self._seeing = Hearing(), Seeing()

    def batch(self, asked: Sequence[Media]) -> list[dict[str, Any]]:
        """Transcript and detections of each."""
        heard = self._hearing.batch([samples for _, samples in asked])
        seen = self._seeing.batch([picture for picture, _ in asked])
        return [{"transcript": one, "detections": other} for one, other in zip(heard, seen, strict=True)]


class Assistant:
    """Hears, sees and answers."""

    def __init__(self) -> None:
        self._both = Both()
        self._writers = ThreadPoolExecutor(16)

    def batch(self, asked: Sequence[tuple[bytes, np.ndarray, str]]) -> list[dict[str, Any]]:
        """Transcript, detections and answer of each; the language model batches by itself."""
        noticed = self._both.batch([(picture, samples) for picture, samples, _ in asked])
        chats = [
            chat_body(messages_of(one["transcript"], one["detections"], question))
            for one, (_, _, question) in zip(noticed, asked, strict=True)
        ]
        return [{**one, "text": text} for one, text in zip(noticed, self._writers.map(written, chats), strict=True)]


_TEMPLATE = prompt_messages.load_template(REPOSITORY / "prompt" / "1" / "template.jinja")


def messages_of(transcript: str, detections: Detections, question: str) -> list[dict[str, str]]:
    """The chat messages that say what was heard, seen and asked."""
    return prompt_messages.messages_from(_TEMPLATE, transcript, json.dumps({"detections": detections}), question)


def chat_body(messages: list[dict[str, str]], *, stream: bool = False) -> dict[str, Any]:
    """The body of /v1/chat/completions."""
    asked = {"model": LLM_MODEL, "messages": messages, "temperature": 0, "max_tokens": MAX_TOKENS}
    return {**asked, "stream": True} if stream else asked


def chat_url() -> str:
    """Where the `vllm serve` listens."""
    return f"{os.environ[LLM_VARIABLE]}/v1/chat/completions"


def written(body: dict[str, Any]) -> str:
    """The answer of the `vllm serve`."""
    request = urllib.request.Request(chat_url(), json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=120) as answer:
        return json.load(answer)["choices"][0]["message"]["content"].strip()
