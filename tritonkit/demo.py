"""`tritonkit demo`: the repository on a real Triton, asked about a recording and a photo, with the time of each step.

In: a model repository that holds the shipped pipelines, weights included. Out: printed text; the server has ended.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from clients import Client, Delta, Detections, Finished, Heard, Seen, connect
from embedded import EmbeddedServer
from embedded.display import Display
from tritonkit.trace import read_trace, trace_flags, wait_for_trace
from tritonkit.tracing import ensemble_config

PIPELINES = ("transcribe", "detect", "assistant")


class Demo:
    """One run: a server, a client, and how often each pipeline was asked so far."""

    def __init__(self, repository: Path, cache: Path, console: Console) -> None:
        self.console = console
        self._repository = repository
        self._cache = cache
        self._traces = Path()
        self._asked_so_far: Counter[str] = Counter()
        self._http = ""

    def run(self, recording: Path, photo: Path, question: str) -> None:
        """Serve, ask three times, end."""
        with ExitStack() as stack:
            self._traces = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            client = stack.enter_context(self._served())
            self._warm_up(client, recording, photo)
            with self._asked("transcribe", f"transcribe {recording.name}"):
                self._transcribe(client, recording)
            with self._asked("detect", f"detect {photo.name}"):
                self._detect(client, photo)
            with self._asked("assistant", f"ask {recording.name} + {photo.name}: {question}"):
                self._ask(client, recording, photo, question)
        self.console.print("server ended")

    @contextmanager
    def _served(self) -> Iterator[Client]:
        display = Display(self.console)
        began = time.monotonic()
        server = EmbeddedServer(
            self._repository,
            load=PIPELINES,
            cache=self._cache,
            log_file=self._cache / "logs" / "demo.log",
            flags=trace_flags(self._traces),
            on_load=display.on_load,
            on_line=display.on_line,
        )
        with ExitStack() as stack:
            with display.live():
                stack.enter_context(server)
            self._http = server.http
            self.console.print(f"tritonserver ready after {time.monotonic() - began:.1f} s (gRPC {server.grpc})")
            yield stack.enter_context(connect(f"grpc://{server.grpc}", timeout_s=120))

    def _warm_up(self, client: Client, recording: Path, photo: Path) -> None:
        """The first request of each model pays for what is made once; the demo shows the ones after it."""
        for _ in client.ask(recording, photo, "Ready?"):
            pass
        self._asked_so_far["assistant"] += 1

    @contextmanager
    def _asked(self, pipeline: str, title: str) -> Iterator[None]:
        self.console.rule(f"[bold]{escape(title)}", align="left")
        began = time.monotonic()
        yield
        took_s = time.monotonic() - began
        path = wait_for_trace(self._traces, pipeline, self._asked_so_far[pipeline])
        self._asked_so_far[pipeline] += 1
        table = Table("step", "starts at", "queue", "takes", box=None, pad_edge=False, header_style="dim")
        for step in read_trace(path, ensemble_config(self._http, pipeline)).steps:
            times = (step.start_s, step.queue_s, step.took_s)
            table.add_row(step.model, *(f"{1000 * value:.0f} ms" for value in times), style="dim")
        self.console.print(table)
        self.console.print(f"[dim]seen by the client: {1000 * took_s:.0f} ms[/dim]\n")

    def _transcribe(self, client: Client, recording: Path) -> None:
        transcript = client.transcribe(recording)
        self.console.print(f"[bold]transcript[/bold] ({transcript.language}): {escape(transcript.text)}")

    def _detect(self, client: Client, photo: Path) -> None:
        self.console.print(f"[bold]detections[/bold]: {_listed(client.detect(photo))}")

    def _ask(self, client: Client, recording: Path, photo: Path, question: str) -> None:
        began = time.monotonic()
        for event in client.ask(recording, photo, question, temperature=0.0):
            at = f"[dim]{1000 * (time.monotonic() - began):5.0f} ms[/dim]"
            match event:
                case Heard():
                    self.console.print(f"{at} [bold]heard[/bold]: {escape(event.transcript)}")
                case Seen():
                    self.console.print(f"{at} [bold]seen[/bold]: {_listed(event.detections)}")
                    self.console.print(f"{at} [bold]answer[/bold]: ", end="")
                case Delta():
                    self.console.print(escape(event.text), end="")
                case Finished():
                    words = f"{event.prompt_tokens} tokens in, {event.completion_tokens} out, {event.reason}"
                    self.console.print(f"\n{at} [dim]{words}[/dim]")


def _listed(found: Detections) -> str:
    boxes = (
        f"{escape(one.label)} {one.score:.2f} at {', '.join(f'{edge:.0f}' for edge in one.box)}" for one in found.items
    )
    return "; ".join(boxes) or "nothing"
