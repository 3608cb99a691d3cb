"""A streamed answer, put together from its parts. Pure.

The same text may come in other pieces when the server is busy, so parts are joined before they are compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from load.plan import Answer, Outputs

TEXTS = ("TEXT", "text_output")  # our llm's and NVIDIA's vLLM backend's
TOKENS = "COMPLETION_TOKENS"


class StreamedAnswer:
    """Parts are added as they come."""

    def __init__(self) -> None:
        self._parts: dict[str, list[np.ndarray]] = {}
        self._first_s = 0.0
        self._token_s: list[float] = []
        self._other_s: list[float] = []

    def add(self, outputs: Mapping[str, np.ndarray], at_s: float) -> None:
        """One part and when it came, by time.monotonic(); empty ones count for nothing."""
        if not outputs:
            return
        self._first_s = self._first_s or at_s
        self._other_s.append(at_s)
        for name, array in outputs.items():
            self._parts.setdefault(name, []).append(array)
        if any(name in outputs and any(outputs[name].reshape(-1)) for name in TEXTS):
            self._token_s.append(at_s)

    def complete(self) -> Answer:
        """The whole answer. Of a model that writes no text, every part counts as a token."""
        tokens = self._parts.get(TOKENS)
        return Answer(
            raw=b"",
            read=self._joined,
            first_s=self._first_s,
            token_s=tuple(self._token_s if any(name in self._parts for name in TEXTS) else self._other_s),
            tokens=int(tokens[-1].reshape(-1)[0]) if tokens else 0,
        )

    def _joined(self) -> Outputs:
        return {name: _join(parts) for name, parts in self._parts.items()}


def _join(parts: list[np.ndarray]) -> Any:
    if any(part.dtype == object for part in parts):
        return b"".join(item for part in parts for item in part.reshape(-1))
    return np.concatenate([part.reshape(-1) for part in parts])
