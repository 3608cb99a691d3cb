"""The server's log: its lines as values, and which of them mean nothing on a machine without a GPU."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

LINE = re.compile(r"([IWEF])\d{4} \d\d:\d\d:\d\d\.\d+ \d+ ([\w.]+):\d+\] ?(.*)", re.DOTALL)

# The wheel is a GPU build: on a machine without a GPU it says these, and nothing is wrong. Each pattern must match
# the whole line, so that a line which says more is shown.
HARMLESS = tuple(
    re.compile(pattern)
    for pattern in (
        r'W\S+ \S+ \d+ pinned_memory_manager\.cc:\d+\] "Unable to allocate pinned system memory, pinned memory pool '
        r'will not be available: CUDA driver version is insufficient for CUDA runtime version"',
        r'I\S+ \S+ \d+ cuda_memory_manager\.cc:\d+\] "CUDA memory pool disabled"',
        r'E\S+ \S+ \d+ server\.cc:\d+\] "CudaDriverHelper has not been initialized\."',
        r"Error: Failed to initialize NVML",
        r'W\S+ \S+ \d+ metrics\.cc:\d+\] "DCGM unable to start: DCGM initialization error"',
        r'E\S+ \S+ \d+ ensemble_scheduler\.cc:\d+\] "unable to create stream for \S+: CUDA driver version is '
        r'insufficient for CUDA runtime version"',
        r'W\S+ \S+ \d+ pinned_memory_manager\.cc:\d+\] "failed to allocate pinned system memory: no pinned memory '
        r'pool, falling back to non-pinned system memory"',
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """One line of the log. `severity` is I, W, E or F; empty for what models and libraries print."""

    severity: str
    source: str
    text: str
    raw: str

    @property
    def is_harmless(self) -> bool:
        return any(pattern.fullmatch(self.raw) for pattern in HARMLESS)


def parse_line(raw: str) -> LogLine:
    """The line as a value; the quotes and escapes around the server's words are taken off."""
    found = LINE.fullmatch(raw)
    if found is None:
        return LogLine(severity="", source="", text=raw, raw=raw)
    severity, source, text = found.groups()
    return LogLine(severity=severity, source=source, text=unquoted(text), raw=raw)


def unquoted(text: str) -> str:
    """What the server put between quotes, as it was before."""
    if text.startswith('"') and text.endswith('"') and len(text) > 1:
        try:
            return str(json.loads(text, strict=False))
        except ValueError:
            return text[1:-1]
    return text


class LogReader:
    """Reads a growing log file piece by piece, whole lines only."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._rest = b""

    def new_lines(self) -> list[LogLine]:
        """The lines that were completed since the last call."""
        *lines, self._rest = (self._rest + self._file.read()).split(b"\n")
        return [parse_line(line.decode(errors="replace").rstrip("\r")) for line in lines]

    def close(self) -> None:
        self._file.close()
