"""Real traces into collectors that others wrote: is every span there that our own collector gets, with its parent?

    python -m benchmarks.collectors model_repository                 a table of spans, ours beside theirs
    python -m benchmarks.collectors model_repository --shot x.png    and a picture of Phoenix' page of one trace

A program with OpenTelemetry's SDK asks the embedded server. What both send (OTLP over HTTP: JSON from Triton, protobuf
from the SDK) goes to our collector and, unchanged, to Rotel, a collector in Rust, which hands it on to Phoenix, which
stores and shows traces. scripts/collectors.sh makes their environment. All runs in a network of its own: Phoenix
listens on every interface.
Exit status 1 if spans differ.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from pathlib import Path

from clients import connect
from deploy.monitoring.collector import PATH, Collector
from deploy.monitoring.spans import Span, trace_flags, trace_lines
from embedded import EmbeddedServer
from embedded.ports import Ports

CHECKOUT = Path(__file__).parents[1]
ENVIRONMENT = CHECKOUT / ".cache" / "collectors" / "env"
HOST = "127.0.0.1"
TIMES = 2
ALONE = "TRITONKIT_IN_OWN_NETWORK"
PIPELINES = ("transcribe", "detect", "assistant", "assistant_audio", "assistant_image", "assistant_text")
PICTURE, SOUND = "samples/coffee.jpg", "samples/sense_and_sensibility.flac"
Key = tuple[str, str, str]  # a span's trace, its id, its parent's


def main() -> int:
    """Runs it all; the exit status."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("repository", type=Path)
    options.add_argument("--shot", type=Path, help="write Phoenix' page of the last trace to this PNG (needs chromium)")
    given = options.parse_args()
    if ALONE not in os.environ:
        namespace = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--net", "--map-root-user"]
        again = [*namespace, sys.executable, "-m", "benchmarks.collectors", *sys.argv[1:]]
        os.execvpe(again[0], again, {**os.environ, ALONE: "1"})
    raise_loopback()
    ports = Ports(HOST, dict.fromkeys(("phoenix", "phoenix_grpc", "rotel", "rotel_grpc"), 0))
    ports.take()
    with (
        Collector() as ours,
        phoenix_running(ports) as phoenix,
        rotel_running(ports, phoenix) as rotel,
        twice(ours.url, f"{rotel}{PATH}") as both,
    ):
        asked = ask_everything(given.repository, both)
        found = [span for trace in islice(ours.traces(quiet_s=3.0), asked) for span in trace]
        stored = stored_spans(phoenix, len(found))
        if given.shot:
            shoot(f"{phoenix}/redirects/traces/{found[-1].trace}", given.shot)
    return told(found, stored)


def ask_everything(repository: Path, traces_url: str) -> int:
    """Asks each pipeline twice, each time below a span of this program's own; how many traces that makes."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    provider = TracerProvider(resource=Resource.create({"service.name": "program"}))
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(endpoint=traces_url)))
    tracer = provider.get_tracer("benchmarks.collectors")
    with (
        EmbeddedServer(repository, load=PIPELINES, cache=CHECKOUT / ".cache", flags=trace_flags(traces_url)) as server,
        connect(f"grpc://{server.grpc}") as client,
    ):
        asks: dict[str, Callable[[], object]] = {
            "what is there?": lambda: client.detect(CHECKOUT / PICTURE),
            "what is said?": lambda: client.transcribe(CHECKOUT / SOUND),
            "a conversation": lambda: list(client.chat("Hello", max_tokens=4)),
            "a question about both": lambda: list(
                client.ask(CHECKOUT / SOUND, CHECKOUT / PICTURE, "What is it?", max_tokens=4)
            ),
        }
        for name, ask in asks.items():
            for _ in range(TIMES):
                with tracer.start_as_current_span(name):
                    ask()
    provider.shutdown()
    return TIMES * len(asks)


def told(ours: list[Span], stored: list[Key]) -> int:
    """Prints a table of spans and one trace; 1 if Phoenix has not the same spans with the same parents."""
    kept = {(trace, span) for trace, span, _ in stored}
    here = Counter((one.service, one.name) for one in ours)
    there = Counter((one.service, one.name) for one in ours if (one.trace, one.id) in kept)
    width = max(len(name) for _, name in here)
    print(f"{'span':{width}}  {'of':12}  ours  Phoenix")
    for service, name in sorted(here):
        print(f"{name:{width}}  {service:12}  {here[service, name]:4}  {there[service, name]:7}")
    same = Counter((one.trace, one.id, one.parent) for one in ours) == Counter(stored)
    traces = len({one.trace for one in ours})
    verdict = "the same ids and parents" if same else "NOT the same ids and parents"
    print(f"{len(ours)} spans of {traces} traces here, {len(stored)} in Phoenix: {verdict}")
    last = ours[-1].trace
    print("\n".join(trace_lines([one for one in ours if one.trace == last])))
    return 0 if same else 1


def stored_spans(phoenix: str, enough: int) -> list[Key]:
    """The spans that Phoenix has, once they are enough or nothing more comes for half a minute."""
    end = time.monotonic() + 30
    while True:
        found, cursor = [], ""
        while cursor is not None:
            page = json.loads(
                fetched(f"{phoenix}/v1/projects/default/spans?limit=1000{cursor and '&cursor=' + cursor}")
            )
            found += page["data"]
            cursor = page.get("next_cursor")
        if len(found) >= enough or time.monotonic() > end:
            return [(one["context"]["trace_id"], one["context"]["span_id"], one["parent_id"] or "") for one in found]
        time.sleep(0.5)


@contextlib.contextmanager
def phoenix_running(ports: Ports) -> Iterator[str]:
    """The address of Phoenix, with an empty store."""
    url = f"http://{ports.address('phoenix')}"
    with tempfile.TemporaryDirectory(prefix="tritonkit-phoenix-") as folder:
        environment = {
            "PHOENIX_HOST": HOST,
            "PHOENIX_PORT": str(ports.taken["phoenix"]),
            "PHOENIX_GRPC_PORT": str(ports.taken["phoenix_grpc"]),
            "PHOENIX_WORKING_DIR": folder,
            "PHOENIX_TELEMETRY_ENABLED": "false",
        }
        with running([str(ENVIRONMENT / "bin" / "arize-phoenix"), "serve"], environment, lambda: answers(url)):
            yield url


@contextlib.contextmanager
def rotel_running(ports: Ports, to: str) -> Iterator[str]:
    """The address of Rotel, which hands traces on."""
    (agent,) = ENVIRONMENT.glob("lib/python*/site-packages/rotel/rotel-agent")
    listen = ("--otlp-http-endpoint", ports.address("rotel"), "--otlp-grpc-endpoint", ports.address("rotel_grpc"))
    handed_on = ("--otlp-exporter-endpoint", to, "--otlp-exporter-protocol", "http")
    with running([str(agent), "start", *listen, *handed_on], {}, lambda: is_open(ports.taken["rotel"])):
        yield f"http://{ports.address('rotel')}"


@contextlib.contextmanager
def twice(*urls: str) -> Iterator[str]:
    """An address; what is posted there is posted to each of these, body and kind unchanged."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            kept = {name: self.headers[name] for name in ("content-type", "content-encoding") if name in self.headers}
            for url in urls:
                with urllib.request.urlopen(urllib.request.Request(url, body, kept), timeout=10) as answer:
                    status, words, kind = answer.status, answer.read(), answer.headers.get("content-type", "")
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(words)))
            self.end_headers()
            self.wfile.write(words)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer((HOST, 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://{HOST}:{server.server_port}{PATH}"
        server.shutdown()


@contextlib.contextmanager
def running(command: list[str], environment: dict[str, str], is_up: Callable[[], bool]) -> Iterator[None]:
    """Runs a program until the block ends."""
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, env={**os.environ, **environment}, stdout=log, stderr=log)
        try:
            end = time.monotonic() + 120
            while not is_up():
                if process.poll() is not None or time.monotonic() > end:
                    log.seek(0)
                    raise SystemExit(f"{command[0]} does not come up:\n{log.read().decode(errors='replace')[-2000:]}")
                time.sleep(0.2)
            yield
        finally:
            process.terminate()
            process.wait(20)


def answers(url: str) -> bool:
    with contextlib.suppress(OSError):
        return bool(fetched(url))
    return False


def is_open(port: int) -> bool:
    with contextlib.suppress(OSError):
        socket.create_connection((HOST, port), timeout=1).close()
        return True
    return False


def fetched(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return bytes(answer.read())


def shoot(url: str, out: Path) -> None:
    """The page as a person sees it."""
    how = ("--headless", "--no-sandbox", "--disable-gpu", "--window-size=1500,1000", "--virtual-time-budget=15000")
    subprocess.run(["chromium", *how, f"--screenshot={out.resolve()}", url], check=True, capture_output=True)


def raise_loopback() -> None:
    """A new network has loopback, but down."""
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sH14s", b"lo", 0x1 | 0x40, b""))  # SIOCSIFFLAGS: up, running


if __name__ == "__main__":
    sys.exit(main())
