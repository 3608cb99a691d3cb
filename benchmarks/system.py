"""`tritonkit serve` and `tritonkit gateway` as a person starts them, on free ports, ended with all below them."""

from __future__ import annotations

import email.utils
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil
import tritonclient.grpc as triton

from starter.stubs import model_of

START_WITHIN_S = 300.0
END_WITHIN_S = 60.0
KEY = "the key of this measurement"


class Program:
    """One of our commands. said: all that it has printed. Its output goes to a file in `folder`."""

    def __init__(self, folder: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> None:
        self._output = folder / f"{arguments[0]}.txt"
        with self._output.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tritonkit", *arguments],
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, "ORT_DISABLE_TELEMETRY": "1", **(environment or {})},
            )

    @property
    def said(self) -> str:
        return self._output.read_text(errors="replace")

    def wait_for(self, pattern: str) -> str:
        """The first group of the pattern, once it was said."""
        end = time.monotonic() + START_WITHIN_S
        while (found := re.search(pattern, self.said)) is None:
            if self.process.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"it did not start:\n{self.said}")
            time.sleep(0.1)
        return found[1]

    def stop(self) -> int:
        """Ask it to end, and wait; its exit status."""
        self.process.terminate()
        try:
            return self.process.wait(END_WITHIN_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


class System:
    """A server over a repository and a gateway in front of it, for as long as a `with` lasts.

    Args:
        folder: for what they print.
        environment: further variables of both.

    Attributes:
        gateway: http://host:port; http, grpc: host:port of the server itself.
    """

    def __init__(
        self,
        repository: Path,
        folder: Path,
        gateway_options: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        if threading.current_thread() is threading.main_thread():  # SIGTERM ends what was started here, as Ctrl-C does
            signal.signal(signal.SIGTERM, signal.default_int_handler)
        self.repository, self.folder = repository, folder
        self._gateway_options, self._environment = gateway_options, dict(environment or {})
        self.front: Program | None = None
        self._start_serve("0", "0")
        try:
            self.http = self.serve.wait_for(r"HTTP\s+http://(\S+)")
            self.grpc = self.serve.wait_for(r"gRPC\s+(\S+)")
            self.gateway = "http://127.0.0.1:0"
            self.start_gateway()
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self) -> System:
        return self

    def __exit__(self, *_: object) -> None:
        for program in (self.front, self.serve):
            if program is not None:
                program.stop()

    def start_gateway(self) -> None:
        """Start the gateway, where one was before at its address."""
        port = self.gateway.rpartition(":")[2]
        options = ("--server", f"grpc://{self.grpc}", "--port", port, *self._gateway_options)
        self.front = Program(self.folder, "gateway", *options, environment=self._environment)
        self.gateway = self.front.wait_for(r"ready: (http://\S+)")

    def start_again(self) -> None:
        """Start the server at the addresses that it had; returns when it answers."""
        self._start_serve(self.http.rpartition(":")[2], self.grpc.rpartition(":")[2])
        self.serve.wait_for("(ready after)")

    def _start_serve(self, http: str, grpc: str) -> None:
        ports = ("--http-port", http, "--grpc-port", grpc, "--metrics-port", "0", "--threads", "1")
        key = {"TRITONKIT_MANAGEMENT_KEY": KEY}
        log = ("--log", str(self.folder / "server.log"))
        words = ("serve", str(self.repository), *ports, *log)
        self.serve = Program(self.folder, *words, environment={**self._environment, **key})

    @property
    def pids(self) -> tuple[int, ...]:
        """The processes that everything is below of."""
        return tuple(one.process.pid for one in (self.serve, self.front) if one is not None)

    def below(self) -> list[tuple[psutil.Process, list[str]]]:
        """Every living process of the server, with its command line."""
        try:
            found = psutil.Process(self.serve.process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []
        return [(one, line) for one in found if (line := words(one))]

    def triton(self) -> psutil.Process:
        """The tritonserver process."""
        return next(one for one, line in self.below() if line[0].endswith("/tritonserver"))

    def find_model(self, model: str) -> psutil.Process | None:
        """The living process of a Python model, if there is one."""
        return next((one for one, _ in self.below() if model_of(one.pid) == model), None)

    def model(self, model: str) -> psutil.Process:
        """The living process of a Python model."""
        found = self.find_model(model)
        if found is None:
            raise SystemExit(f"{model} has no process")
        return found

    def find_engine(self) -> psutil.Process | None:
        """vLLM's own process, below that of the model, if there is one."""
        return next((one for one, line in self.below() if "EngineCore" in line[0]), None)

    def engine(self) -> psutil.Process:
        """vLLM's own process."""
        found = self.find_engine()
        if found is None:
            raise SystemExit("there is no engine")
        return found

    def is_ready(self, model: str) -> bool:
        """Whether the server says that a model can be asked."""
        return self._ask("GET", f"/v2/models/{model}/ready") == 200

    def manage(self, path: str) -> int:
        """The status of a request that needs the management's key."""
        return self._ask("POST", path)

    def regions(self, prefix: str) -> list[str]:
        """Clients' shared memory that the server holds, by names that begin so."""
        with triton.InferenceServerClient(self.grpc) as client:
            found = client.get_system_shared_memory_status()
        return [name for name in found.regions if name.startswith(prefix)]

    def front_memory(self) -> int:
        """Bytes that the gateway has."""
        return psutil.Process(self.pids[-1]).memory_info().rss

    def date(self) -> float:
        """What time it is for the gateway, in seconds since 1970."""
        with urllib.request.urlopen(f"{self.gateway}/health", timeout=10) as answer:
            return email.utils.parsedate_to_datetime(answer.headers["date"]).timestamp()

    def _ask(self, method: str, path: str) -> int:
        body = b"{}" if method == "POST" else None
        headers = {"tritonkit-key": KEY}
        request = urllib.request.Request(f"http://{self.http}{path}", body, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            error.close()
            return error.code
        except OSError:
            return 0


def words(process: psutil.Process) -> list[str]:
    """The command line of a process; empty when it is gone or dead."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []
