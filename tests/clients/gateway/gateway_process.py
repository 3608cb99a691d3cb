"""The gateway as its own process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

import pytest

READY = re.compile(r"ready: (http://\S+)")
START_LIMIT_S = 60


class Gateway:
    """One gateway process. url: its address, such as http://127.0.0.1:9000."""

    def __init__(self, server: str, *options: str, environment: dict[str, str] | None = None) -> None:
        command = [sys.executable, "-m", "clients.gateway", "--server", server, "--port", "0", *options]
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **(environment or {})},
            cwd=Path(__file__).parents[3],
        )
        alarm = threading.Timer(START_LIMIT_S, self.process.kill)
        alarm.start()
        line = self.process.stdout.readline() if self.process.stdout else ""
        alarm.cancel()
        found = READY.match(line)
        if found is None:
            self.process.kill()
            pytest.fail(f"the gateway did not start: {line}{self.process.communicate()[1]}")
        self.url = found[1]
        self.api = f"{self.url}/v1"

    def stop(self) -> tuple[int, str]:
        """Exit status and what it said on stderr."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            _, errors = self.process.communicate(timeout=40)
        except subprocess.TimeoutExpired:
            self.process.kill()
            _, errors = self.process.communicate()
        return self.process.returncode, errors

    def metrics(self) -> dict[str, float]:
        """Every sample, by its name with its labels."""
        return samples_of(f"{self.url}/metrics")


def samples_of(url: str) -> dict[str, float]:
    """The samples of a Prometheus page, by name with labels."""
    with urllib.request.urlopen(url, timeout=10) as answer:
        lines = [line for line in answer.read().decode().splitlines() if line and not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}
