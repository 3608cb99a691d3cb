"""A replica's Triton in a container of the GPU image, for machines with GPUs and a docker engine.

Used as the embedded server is: made, entered, asked at `grpc`, stopped. What runs in the container is what
`tritonkit serve --gpu` runs, on the GPUs that Ray has given to the replica.
"""

import http.client
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from deploy.ray import keeper
from embedded.docker import check_engine, docker_run
from embedded.errors import NotReadyInTime, ServerDied
from embedded.ports import Ports
from embedded.preconditions import check_repository

HOST = "127.0.0.1"
POLL_S = 0.2
MARGIN_S = 5.0  # between the server's own end and docker's kill
OTHERWISE = "leave out --image for the embedded server"


class ContainerServer:
    """A container over `repository`, ended with this process, in whatever way that ends.

    Args:
        image: the image; fetched by docker if it is not there.
        stock: version of onnxruntime-gpu that it gets at its start, if it is NVIDIA's own; "" if it is ours.
        load: models to load, an ensemble brings its steps; ready when all of them are.
        gpus: those of this replica, as Ray names them: numbers or UUIDs.
        environment: further variables for the server and its Python models.
        ready_timeout_s: how long `with` waits; weights of a large model take minutes.
        stop_timeout_s: how long requests in flight may take at the end.
    """

    def __init__(
        self,
        repository: Path,
        *,
        image: str,
        stock: str = "",
        load: Sequence[str],
        gpus: Sequence[str],
        shm_size: str = "2g",
        flags: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        ready_timeout_s: float = 3600.0,
        stop_timeout_s: float = 30.0,
    ) -> None:
        self.repository, self.image, self.stock = repository, image, stock
        self.load, self.gpus, self.shm_size, self.flags = tuple(load), tuple(gpus), shm_size, tuple(flags)
        self.environment = dict(environment or {})
        self.ready_timeout_s, self.stop_timeout_s = ready_timeout_s, stop_timeout_s
        self.name = f"tritonkit-{uuid.uuid4().hex[:12]}"
        self.ports = Ports(HOST, {"http": 0, "grpc": 0, "metrics": 0})
        self._keeper: subprocess.Popen[bytes] | None = None

    @property
    def grpc(self) -> str:
        """`host:port` of the gRPC endpoint."""
        return self.ports.address("grpc")

    @property
    def is_running(self) -> bool:
        """Whether the container is there."""
        return self._keeper is not None and self._keeper.poll() is None

    def command(self) -> list[str]:
        """The `docker run` of it."""
        return docker_run(
            image=self.image,
            repository=self.repository,
            host=HOST,
            ports=self.ports.taken,
            load=self.load,
            shm_size=self.shm_size,
            flags=(*self.flags, f"--exit-timeout-secs={round(self.stop_timeout_s)}"),
            stock=self.stock or None,
            name=self.name,
            # Docker reads commas as a list of settings, but for what stands in quotes.
            gpus=f'"device={",".join(self.gpus)}"',
            pass_on=tuple(self.environment),
        )

    def __enter__(self) -> Self:
        """Starts it and returns once its models answer.

        Raises:
            CannotStart: no docker engine on this machine, or no such repository; nothing was started.
            ServerDied: it has ended; why stands in this process's own output, which Ray keeps as the replica's log.
            NotReadyInTime: the limit came first.
        """
        check_engine(OTHERWISE)
        check_repository(self.repository, list(self.load))
        self.ports.take()
        grace_s = self.stop_timeout_s + MARGIN_S
        kept = [sys.executable, "-I", keeper.__file__, str(os.getpid()), str(grace_s), self.name]
        environment = {**os.environ, **self.environment}
        self._keeper = subprocess.Popen([*kept, *self.command()], env=environment, start_new_session=True)
        try:
            self._wait_ready()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Ends the container; requests in flight get their time."""
        if self._keeper is not None and self._keeper.poll() is None:
            self._keeper.send_signal(signal.SIGTERM)
            self._keeper.wait()
        self.ports.release()

    def _wait_ready(self) -> None:
        deadline = time.monotonic() + self.ready_timeout_s
        while not all(self._answers(f"/v2/models/{model}/ready") for model in self.load):
            if not self.is_running:
                raise ServerDied(
                    f"{self.name} of {self.image} has ended by itself. Its words are in the replica's log."
                )
            if time.monotonic() > deadline:
                raise NotReadyInTime(f"{self.name} of {self.image}: not ready after {self.ready_timeout_s:g} s.")
            time.sleep(POLL_S)

    def _answers(self, path: str) -> bool:
        connection = http.client.HTTPConnection(self.ports.address("http"), timeout=5)
        try:
            connection.request("GET", path)
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
