"""What a person sees while the server loads: a live table in a terminal, one plain line per change elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from embedded.loads import Load
from embedded.log import LogLine

SHOWN_SEVERITIES = ("W", "E", "F")


class Display:
    """Shows models as they load, and those lines of the log that mean something."""

    def __init__(self, console: Console, *, everything: bool = False) -> None:
        self.console = console
        self.everything = everything
        self._models: dict[str, Load] = {}
        self._spinner = Spinner("dots")
        self._live: Live | None = None

    @contextmanager
    def live(self) -> Iterator[None]:
        """While this lasts, the table is drawn anew with every change, if there is a terminal."""
        if not self.console.is_terminal:
            yield
            return
        with Live(get_renderable=self.table, console=self.console, refresh_per_second=10) as self._live:
            yield
        self._live = None

    def on_load(self, load: Load) -> None:
        """A model began to load, is ready, or failed."""
        self._models[load.model] = load
        if self._live is None:
            self.console.print(Text(f"{load.model}: {words(load)}"))

    def on_line(self, line: LogLine) -> None:
        """A line of the log that is not about loading."""
        if line.is_harmless:
            return
        if self.everything:
            self.console.print(Text(line.raw))
        elif line.severity in SHOWN_SEVERITIES:
            self.console.print(Text(f"{line.severity} {line.source}: {line.text.strip()}"))

    def table(self) -> RenderableType:
        """All models and how far each is."""
        table = Table.grid(padding=(0, 2))
        for load in self._models.values():
            mark: RenderableType = self._spinner if load.state == "loading" else Text(*MARKS[load.state])
            table.add_row(mark, Text(load.model), Text(words(load), style="dim"))
        return table


MARKS = {"ready": ("✓", "green"), "failed": ("✗", "red")}


def words(load: Load) -> str:
    """The state of one model: loading | ready (1.2 s) | failed."""
    return f"ready ({load.seconds:.1f} s)" if load.state == "ready" else load.state
