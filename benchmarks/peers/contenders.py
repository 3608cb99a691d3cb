"""Every contender by name: how it is started for a service, and how it is asked."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from benchmarks.peers import calls
from benchmarks.peers.apps.engine import engine_arguments
from benchmarks.peers.cases import Case
from benchmarks.peers.driver import Call, Tally, closed_loop
from benchmarks.peers.processes import END_S, Tree, end_all, free_port, log_of, start, wait_until_open
from benchmarks.peers.work.asking import LLM_MODEL, LLM_VARIABLE
from benchmarks.peers.work.places import CACHE, ROOT, WEIGHTS, cores
from clients import AsyncClient, connect_async
from embedded import EmbeddedServer

PEERS_PYTHON = CACHE / "env" / "bin" / "python"
LOADED = {
    "detect": ["detect"],
    "transcribe": ["transcribe"],
    "both": ["both"],
    "assistant": ["assistant"],
    "gemm": ["gemm", "gemm_alone"],
    "frame": ["frame"],
    "chat": ["llm"],
}


class Running(Protocol):
    """A contender that answers."""

    name: str

    def trees(self) -> list[Tree]:
        """Its processes."""

    async def measure(self, cases: Sequence[Case], callers: int, seconds: float) -> Tally:
        """One round."""


@dataclass(slots=True, kw_only=True)
class Asked:
    """A contender behind a socket, asked from this process."""

    name: str
    processes: list[Tree]
    call: Call

    def trees(self) -> list[Tree]:
        return self.processes

    async def measure(self, cases: Sequence[Case], callers: int, seconds: float) -> Tally:
        return await closed_loop(self.call, cases, callers=callers, seconds=seconds)


@dataclass(slots=True, kw_only=True)
class InProcess:
    """A contender without a server: the load runs in its process, told what to do over a pipe."""

    name: str
    process: subprocess.Popen[bytes]

    def trees(self) -> list[Tree]:
        return [Tree(self.process.pid)]

    async def measure(self, cases: Sequence[Case], callers: int, seconds: float) -> Tally:
        self._say({"callers": callers, "seconds": seconds})
        return Tally(**await asyncio.to_thread(self.hear))

    def _say(self, words: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(words).encode() + b"\n")
        self.process.stdin.flush()

    def hear(self) -> dict[str, Any]:
        """Its next line."""
        assert self.process.stdout is not None
        while line := self.process.stdout.readline():
            if line.startswith(b"{"):
                return json.loads(line)
        raise RuntimeError(f"{self.name} ended; see {log_of(self.name)}")


class Started:
    """Starts contenders for one service; each `start` returns at once, `finish` waits and returns them.

    Args:
        session: makes HTTP requests.
    """

    def __init__(self, service: str, session: Any) -> None:
        self._service, self._session = service, session
        self._finish: list[Callable[[], list[Running]]] = []
        self._began: list[subprocess.Popen[bytes]] = []
        self._server: EmbeddedServer | None = None
        self._clients: list[AsyncClient] = []
        self._llm: tuple[subprocess.Popen[bytes], str] | None = None

    def start(self, names: Sequence[str]) -> None:
        """Begin to start these."""
        if self._service == "assistant" and any(not name.startswith("tritonkit") for name in names):
            self._start_llm()
        ours = [name for name in names if name.startswith("tritonkit")]
        if ours:
            self._start_tritonkit(ours)
        for name in names:
            if name not in ours:
                kind = name.partition(", ")[0].replace(" ", "_").lower()
                getattr(self, f"_start_{kind}")(name)

    def finish(self, log: Callable[[str], None]) -> list[Running]:
        """Those that were started, when they answer, in the order of their start; who does not start is told."""
        found: list[Running] = []
        for finish in self._finish:
            try:
                found += finish()
            except RuntimeError as error:
                log(f"left out: {error}")
        return found

    async def end(self) -> None:
        """Ends everything."""
        for client in self._clients:
            await client.close()
        end_all([Tree(process.pid) for process in self._began if process.poll() is None])
        if self._server is not None:
            Tree(self._server.server_pid()).go_on()
            self._server.stop(timeout_s=END_S)

    # tritonkit

    def _start_tritonkit(self, names: Sequence[str]) -> None:
        folder = CACHE / "repository"
        self._server = EmbeddedServer(
            folder,
            load=LOADED[self._service],
            cache=ROOT / ".cache",
            log_file=CACHE / "logs" / "tritonkit.log",
        )
        self._server.start()
        self._finish.append(lambda: [self._tritonkit(name) for name in names])

    def _tritonkit(self, name: str) -> Running:
        assert self._server is not None
        self._server.wait_ready()
        trees = [Tree(self._server.server_pid())]
        service, variant = self._service, name.partition(", ")[2]
        if variant == "gateway":
            return self._gateway(name, trees)
        client = self._client(self._server.grpc, shared_memory=variant == "shared memory")
        if variant == "steps by the client":
            call = calls.step_by_step(client, service)
        elif service == "gemm":
            call = calls.gemm(client, "gemm_alone" if variant == "no window" else "gemm")
        else:
            call = calls.pipeline(client, service)
        return Asked(name=name, processes=trees, call=call)

    def _gateway(self, name: str, trees: list[Tree]) -> Running:
        assert self._server is not None
        port = free_port()
        command = [sys.executable, "-m", "tritonkit", "gateway", "--server", f"grpc://{self._server.grpc}"]
        process = self._begin("gateway", [*command, "--port", str(port)])
        wait_until_open(process, f"http://127.0.0.1:{port}/v1/models", "gateway")
        call = calls.streamed(self._session, f"http://127.0.0.1:{port}/v1/chat/completions")
        return Asked(name=name, processes=[*trees, Tree(process.pid)], call=call)

    def _client(self, address: str, *, shared_memory: bool = False) -> AsyncClient:
        client = connect_async(f"grpc://{address}", timeout_s=60, shared_memory=shared_memory)
        self._clients.append(client)
        return client

    # peers behind HTTP

    def _start_fastapi(self, name: str) -> None:
        module = "hf_app" if self._service == "assistant" else "fastapi_app"
        self._http(name, lambda port: [sys.executable, *app(module), str(port), self._service])

    def _start_litserve(self, name: str) -> None:
        command = [str(PEERS_PYTHON), *app("litserve_app")]
        self._http(name, lambda port: [*command, str(port), self._service], calls.posted_to_litserve)

    def _start_bentoml(self, name: str) -> None:
        command = [str(PEERS_PYTHON), "-m", "bentoml", "serve", "benchmarks.peers.apps.bentoml_app:Served"]
        call = calls.posted if self._service == "frame" else calls.posted_as_list
        self._http(name, lambda port: [*command, "--host", "127.0.0.1", "--port", str(port)], call)

    def _start_ray_serve(self, name: str) -> None:
        self._http(name, lambda port: [sys.executable, *app("ray_app"), str(port), self._service])

    def _start_transformers(self, name: str) -> None:
        self._http(name, lambda port: [sys.executable, *app("hf_app"), str(port), self._service])

    def _http(self, name: str, command: Callable[[int], list[str]], call: Callable[..., Call] = calls.posted) -> None:
        port = free_port()
        variables = {"PEERS_SERVICE": self._service, LLM_VARIABLE: self._llm[1] if self._llm else ""}
        process = self._begin(name, command(port), variables)

        def finish() -> list[Running]:
            url = f"http://127.0.0.1:{port}/{self._service}"
            wait_until_open(process, url, name)
            trees = [Tree(process.pid), *self._llm_trees(name)]
            return [Asked(name=name, processes=trees, call=call(self._session, url))]

        self._finish.append(finish)

    def _llm_trees(self, name: str) -> list[Tree]:
        """The `vllm serve` that stands behind the peers; the wrapper of the articles has its own model."""
        return [Tree(self._llm[0].pid)] if self._llm and name != "FastAPI" else []

    # PyTriton

    def _start_pytriton(self, name: str) -> None:
        port = free_port()
        # its Python models must find this interpreter's library before the system's
        library = {"LD_LIBRARY_PATH": str(sysconfig.get_config_var("LIBDIR"))}
        variables = {LLM_VARIABLE: self._llm[1] if self._llm else "", **library}
        process = self._begin(name, [sys.executable, *app("pytriton_app"), str(port), self._service], variables)

        def finish() -> list[Running]:
            wait_until_open(
                process, f"http://127.0.0.1:{port + 1}/v2/models/{self._service}/ready", name, needs_ok=True
            )
            call = calls.pytriton(self._client(f"127.0.0.1:{port}"), self._service)
            trees = [Tree(process.pid), *self._llm_trees(name)]
            return [Asked(name=name, processes=trees, call=call)]

        self._finish.append(finish)

    # language models

    def _start_vllm_serve(self, name: str) -> None:
        self._start_llm()
        assert self._llm is not None
        process, url = self._llm

        def finish() -> list[Running]:
            wait_until_open(process, f"{url}/health", name, needs_ok=True)
            call = calls.streamed(self._session, f"{url}/v1/chat/completions")
            return [Asked(name=name, processes=[Tree(process.pid)], call=call)]

        self._finish.append(finish)

    def _start_llm(self) -> None:
        """The `vllm serve` with the served model's own arguments."""
        if self._llm is not None:
            return
        port = free_port()
        flags = [flag for key, value in engine_arguments().items() for flag in vllm_flags(key, value)]
        command = [str(PEERS_PYTHON), "-m", "vllm.entrypoints.openai.api_server", "--model", str(WEIGHTS), *flags]
        listening = ["--host", "127.0.0.1", "--port", str(port), "--served-model-name", LLM_MODEL]
        variables = {**engine_variables(), "VLLM_CPU_OMP_THREADS_BIND": "auto"}  # vLLM's own default
        process = self._begin("vllm serve", [*command, *listening], variables)
        self._llm = process, f"http://127.0.0.1:{port}"

    def _start_asyncllm(self, name: str) -> None:
        cores = "auto" if name.endswith("on its core") else "nobind"
        variables = {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_CPU_OMP_THREADS_BIND": cores}
        self._in_process(name, app("engine"), {**engine_variables(), **variables})

    def _start_no_server(self, name: str) -> None:
        self._in_process(name, [*app("direct"), self._service], {})

    def _in_process(self, name: str, module: list[str], variables: dict[str, str]) -> None:
        process = start(name, [sys.executable, *module], variables, speaks=True)
        self._began.append(process)

        def finish() -> list[Running]:
            running = InProcess(name=name, process=process)
            running.hear()
            return [running]

        self._finish.append(finish)

    def _begin(self, name: str, command: list[str], variables: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
        process = start(name, command, variables or {})
        self._began.append(process)
        return process


def app(module: str) -> list[str]:
    """The arguments that run one of our programs."""
    return ["-m", f"benchmarks.peers.apps.{module}"]


def engine_variables() -> dict[str, str]:
    """What the served model sets for itself: a core is left for the scheduler."""
    return {"OMP_NUM_THREADS": str(max(1, cores() - 1))}


def vllm_flags(key: str, value: Any) -> list[str]:
    """An engine argument as `vllm serve` takes it."""
    flag = f"--{key.replace('_', '-')}"
    if key == "model":
        return []
    if isinstance(value, bool):
        return [flag] if value else []
    return [flag, json.dumps(value) if isinstance(value, dict) else str(value)]
