"""What the real server says about a repository folder: for each model whether it loads, and its words if it does not.

One start carries many repositories: models have names of their own, and the server goes on after a model failed.
"""

from __future__ import annotations

import http.client
import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from embedded import EmbeddedServer, LogLine

POLL_FAILED = re.compile(r"Poll failed for model directory '(.+?)': (.*)", re.DOTALL)
FAILED = re.compile(r"failed to load '(.+?)' version \d+: (.*)", re.DOTALL)
NO_VERSION = re.compile(r"failed to load model '(.+?)': (.*)", re.DOTALL)
PARSE_ERROR = re.compile(r"\[libprotobuf ERROR .*\] Error parsing text-format inference\.ModelConfig: (.*)")
OPEN_POLL_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether a model loads, and the server's words where it does not."""

    loads: bool
    words: str = ""


@contextmanager
def serving(
    repository: Path, flags: Sequence[str] = (), timeout_s: float = 600.0
) -> Iterator[tuple[EmbeddedServer, Verdicts]]:
    """The server over `repository`, whatever loads, and what it said of each model. Its log lies beside the folder.

    Raises:
        TimeoutError: it does not answer in time (a stub that hangs).
    """
    words = Verdicts()
    server = EmbeddedServer(
        repository,
        flags=["--exit-on-error=false", *flags],
        log_file=repository.with_suffix(".log"),
        on_line=words.read,
        stop_timeout_s=60.0,
        cpu_threads=1,
    )
    server.start()
    try:
        deadline = time.monotonic() + timeout_s
        while not _is_live(server.http):
            if not server.is_running or time.monotonic() > deadline:
                raise TimeoutError(f"the server does not answer: look into {server.log_file}")
            time.sleep(OPEN_POLL_S)
        server.poll()
        words.finish(server.http)
        yield server, words
    finally:
        server.stop()


def verdicts(repository: Path, flags: Sequence[str] = (), timeout_s: float = 600.0) -> Mapping[str, Verdict]:
    """The server's verdict on every folder of `repository`."""
    with serving(repository, flags, timeout_s) as (_, words):
        return {
            folder.name: words.verdict(folder.name) for folder in sorted(repository.iterdir()) if not folder.is_file()
        }


class Verdicts:
    """The words of the log by model, and which models are ready."""

    def __init__(self) -> None:
        self.words: dict[str, str] = {}
        self.ready: set[str] = set()
        self._parse_errors: list[str] = []

    def read(self, line: LogLine) -> None:
        """Take note of one line of the log."""
        if found := PARSE_ERROR.search(line.text):
            self._parse_errors.append(found[1])
        elif found := POLL_FAILED.fullmatch(line.text):
            parse = "; ".join(self._parse_errors)
            self._parse_errors.clear()
            self.words[found[1]] = f"{found[2]} {parse}".strip()
        elif found := FAILED.fullmatch(line.text) or NO_VERSION.fullmatch(line.text):
            self.words[found[1]] = found[2]

    def finish(self, address: str) -> None:
        """Ask the server itself which models are ready; it knows reasons that the log gives without a name."""
        for row in json.loads(_post(address, "/v2/repository/index")):
            if row.get("state") == "READY":
                self.ready.add(row["name"])
            elif row.get("reason"):
                self.words.setdefault(row["name"], row["reason"])

    def verdict(self, model: str) -> Verdict:
        """What was said of `model`."""
        return Verdict(loads=model in self.ready, words="" if model in self.ready else self.words.get(model, ""))


def _is_live(address: str) -> bool:
    connection = http.client.HTTPConnection(address, timeout=5)
    try:
        connection.request("GET", "/v2/health/live")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def _post(address: str, path: str) -> bytes:
    connection = http.client.HTTPConnection(address, timeout=60)
    try:
        connection.request("POST", path, body=b"{}")
        return connection.getresponse().read()
    finally:
        connection.close()
