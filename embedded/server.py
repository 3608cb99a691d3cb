"""The embedded server: a real tritonserver of this machine over one repository folder, for as long as a `with` lasts.

with EmbeddedServer(Path("model_repository"), entry=["assistant"]) as server:
    client = tritonclient.grpc.InferenceServerClient(server.grpc)
"""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import NoReturn

from embedded import preconditions, supervise
from embedded.assemble import assemble_backends
from embedded.environment import server_environment
from embedded.errors import LoadFailed, NotReadyInTime, ServerDied, ServerError
from embedded.flags import server_flags
from embedded.loads import Load, Loads
from embedded.log import LogLine, LogReader
from embedded.ports import Ports
from embedded.stubs import StubWatch
from embedded.wheel import find_wheel
from starter.stubs import children

POLL_S = 0.05


class EmbeddedServer:
    """A tritonserver process over `repository`, ended with everything below it.

    Args:
        repository: folder with one folder per model.
        load: models to load, an ensemble brings its steps; all of the repository if None.
        entry: models that `with` waits for; those of `load`, or every model, if empty.
        host: address to listen on.
        http_port, grpc_port, metrics_port: 0 takes a free one.
        log_file: where the whole log goes; a temporary file if None, removed again unless something went wrong.
        cache: folder to keep the assembled backends in.
        cpu_threads: threads per numeric library and model process; the libraries' own choice if None.
        flags: further flags of tritonserver.
        environment: further variables for the server and its Python models.
        ready_timeout_s: how long `with` waits.
        stop_timeout_s: how long a request in flight and the models' own `finalize` may take at the end.
        on_line: called with each line of the log as it is read, except those about loading.
        on_load: called whenever a model begins to load, is ready, or failed.
    """

    def __init__(
        self,
        repository: Path,
        *,
        load: Sequence[str] | None = None,
        entry: Sequence[str] = (),
        host: str = "127.0.0.1",
        http_port: int = 0,
        grpc_port: int = 0,
        metrics_port: int = 0,
        log_file: Path | None = None,
        cache: Path = Path(".cache"),
        cpu_threads: int | None = None,
        flags: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        ready_timeout_s: float = 300.0,
        stop_timeout_s: float = 5.0,
        on_line: Callable[[LogLine], None] | None = None,
        on_load: Callable[[Load], None] | None = None,
    ) -> None:
        self.repository = Path(repository).resolve()
        self.load = None if load is None else tuple(load)
        self.entry = tuple(entry)
        self.host = host
        self.ports = Ports(host, {"http": http_port, "grpc": grpc_port, "metrics": metrics_port})
        self._given_log_file = log_file
        self.log_file: Path = Path(log_file) if log_file else Path()
        self.cache = Path(cache).resolve()
        self.cpu_threads = cpu_threads
        self.flags = tuple(flags)
        self.environment = dict(environment or {})
        self.ready_timeout_s = ready_timeout_s
        self.stop_timeout_s = stop_timeout_s
        self._on_line = on_line or (lambda line: None)
        self.loads = Loads(on_change=on_load or (lambda load: None))
        self.shm_prefix = f"tritonkit-{uuid.uuid4().hex[:8]}-"
        self._process: subprocess.Popen[bytes] | None = None
        self._log: LogReader | None = None
        self._has_failed = False

    # -- addresses -----------------------------------------------------------------------------------------------------

    @property
    def http(self) -> str:
        """`host:port` of the HTTP endpoint, as tritonclient takes it."""
        return self.ports.address("http")

    @property
    def grpc(self) -> str:
        """`host:port` of the gRPC endpoint, as tritonclient takes it."""
        return self.ports.address("grpc")

    @property
    def metrics(self) -> str:
        """`http://host:port/metrics`."""
        return f"http://{self.ports.address('metrics')}/metrics"

    # -- life ----------------------------------------------------------------------------------------------------------

    def __enter__(self) -> EmbeddedServer:
        self.start()
        try:
            self.wait_ready()
        except BaseException:
            self.stop(timeout_s=0)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start the process; returns at once, long before it answers.

        Raises:
            CannotStart: a precondition is not met; nothing was started.
            PortInUse: a port that was asked for is taken; nothing was started.
        """
        if self._process is not None:
            raise ServerError("this server was started already. Make another EmbeddedServer.")
        preconditions.check_machine()
        preconditions.check_repository(self.repository, [*(self.load or ()), *self.entry])
        wheel = find_wheel()
        backends = assemble_backends(wheel, self.cache / "embedded")
        try:
            self.ports.take()
            command = [
                *supervisor(self.stop_timeout_s, self.shm_prefix),
                str(wheel.tritonserver),
                *server_flags(
                    repository=self.repository,
                    backends=backends,
                    caches=wheel.caches,
                    host=self.host,
                    ports=self.ports.taken,
                    load=self.load,
                    shm_prefix=self.shm_prefix,
                    exit_timeout_s=self.stop_timeout_s,
                ),
                *self.flags,
            ]
            environment = server_environment(
                {**os.environ, **self.environment},
                wheel=wheel,
                python=Path(sys.executable),
                cpu_threads=self.cpu_threads,
            )
            self._launch(command, environment)
        except BaseException:
            self.ports.release()
            raise

    def _launch(self, command: list[str], environment: dict[str, str]) -> None:
        if self._given_log_file is None:
            handle, name = tempfile.mkstemp(prefix="tritonkit-server-", suffix=".log")
            os.close(handle)
            self.log_file = Path(name)
        self.log_file.parent.mkdir(parents=True, exist_ok=True)
        with self.log_file.open("wb") as log:
            # A session of its own: Ctrl-C in a terminal reaches us, and we decide how the server ends.
            self._process = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._log = LogReader(self.log_file)

    def wait_ready(self, entry: Sequence[str] | None = None, timeout_s: float | None = None) -> None:
        """Return once every model of `entry` answers; the default is what the constructor was given.

        The server's own health endpoint is not asked: it says ready although an ensemble was refused.

        Raises:
            LoadFailed: at least one model does not load.
            ServerDied: the process ended for another reason.
            NotReadyInTime: the limit came first.
        """
        limit_s = self.ready_timeout_s if timeout_s is None else timeout_s
        deadline = time.monotonic() + limit_s
        watch = StubWatch()
        while not self._is_open():
            self.poll()
            dead = watch.dead(self.server_pid(), self.loads.still_loading)
            for model, words in dead.items():
                self.loads.fail(model, words)
            if dead or self.loads.is_giving_up or self.loads.is_hanging or not self.is_running:
                self._raise_why()
            if time.monotonic() > deadline:
                self._raise_not_ready(limit_s)
            time.sleep(POLL_S)
        # The endpoints open when everything has loaded: what is not ready now will never be.
        self.poll()
        for name in entry if entry is not None else self.entry or self.load or self.loads.models:
            if not self._answers(f"/v2/models/{name}/ready"):
                self.loads.fail(name, "the server is up, but this model is not loaded")
        if self.loads.problems:
            self._raise_why()

    def poll(self) -> None:
        """Read what the log has got since the last call."""
        for line in self._log.new_lines() if self._log else ():
            if not self.loads.read(line):
                self._on_line(line)

    @property
    def is_running(self) -> bool:
        """Whether the process is there."""
        return self._process is not None and self._process.poll() is None

    def stop(self, timeout_s: float | None = None) -> None:
        """End the server and every process below it; what is left after the limit is killed.

        Requests in flight and the models' own `finalize` get until then; 0 kills at once.
        """
        if self._process is None:
            return
        limit_s = self.stop_timeout_s if timeout_s is None else timeout_s
        self._process.send_signal(signal.SIGTERM if limit_s > 0 else signal.SIGINT)
        try:
            self._process.wait(limit_s)
        except subprocess.TimeoutExpired:
            self._process.send_signal(signal.SIGINT)
        self._process.wait(supervise.GIVE_UP_S + 5)
        self._close()

    # -- parts ---------------------------------------------------------------------------------------------------------

    def _close(self) -> None:
        self.poll()
        if self._log is not None:
            self._log.close()
            self._log = None
        self.ports.release()
        if self._given_log_file is None and not self._has_failed:
            self.log_file.unlink(missing_ok=True)

    def server_pid(self) -> int:
        """The tritonserver below our supervisor; 0 while it is not there yet."""
        below = children(self._process.pid) if self._process else []
        return below[0] if below else 0

    def _is_open(self) -> bool:
        """Whether every endpoint answers; the one of metrics opens last."""
        has_metrics = not any(flag.startswith("--allow-metrics") for flag in self.flags)
        return (
            self.is_running
            and self._answers("/v2/health/live")
            and (not has_metrics or self._answers("/metrics", self.ports.address("metrics")))
        )

    def _answers(self, path: str, address: str = "") -> bool:
        connection = http.client.HTTPConnection(address or self.http, timeout=5)
        try:
            connection.request("GET", path)
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()

    def _raise_why(self) -> NoReturn:
        """Raise what the log says; the process is ended first, its log complete."""
        self.stop(timeout_s=0)
        self._has_failed = True
        if self.loads.problems:
            raise LoadFailed(tuple(self.loads.problems.values()), self.log_file)
        status = self._process.returncode if self._process else 0
        words = self.loads.last_words or f"exit status {status}"
        raise ServerDied(f"the server ended by itself: {words}. Look into {self.log_file}")

    def _raise_not_ready(self, limit_s: float) -> NoReturn:
        self._has_failed = True
        raise NotReadyInTime(
            f"not ready after {limit_s:g} s; still loading: {', '.join(self.loads.still_loading) or 'nothing yet'}. "
            f"Give it more time, or look into {self.log_file}"
        )


def supervisor(grace_s: float, shm_prefix: str) -> list[str]:
    """The command in front of the server's own: our small program that lets nothing outlive us."""
    return [sys.executable, "-I", "-S", str(supervise.__file__), str(os.getpid()), str(grace_s), shm_prefix]
