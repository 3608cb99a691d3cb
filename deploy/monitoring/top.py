"""What a server is doing, live in a terminal."""

import time
import urllib.request
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from deploy.errors import DeployError
from deploy.monitoring.samples import Row, read_counts, rows_between

if TYPE_CHECKING:
    from rich.table import Table

COLUMNS = (
    "requests/s",
    "failed/s",
    "at once",
    "queue ms",
    "compute ms",
    "waiting",
    "first token ms",
    "tokens/s",
    "KV %",
)


def looks(url: str, every_s: float) -> Iterator[list[Row]]:
    """The rows of each interval, as long as somebody wants them.

    Raises:
        DeployError: nobody answers there, or not with metrics.
    """
    before, began = read_counts(fetched(url)), time.monotonic()
    while True:
        time.sleep(every_s)
        after, now = read_counts(fetched(url)), time.monotonic()
        yield rows_between(before, after, now - began)
        before, began = after, now


def fetched(url: str) -> str:
    """The metrics as text."""
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            text = answer.read().decode("utf-8", "replace")
    except (OSError, ValueError) as error:
        raise DeployError(f"{url}: {error}. Give the server's metrics: http://host:8002/metrics") from error
    if "nv_inference_count" not in text:
        raise DeployError(f"{url}: no metrics of Triton. They are at http://host:8002/metrics")
    return text


def table_of(rows: Sequence[Row]) -> "Table":
    """The rows for a person."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("model")
    for column in COLUMNS:
        table.add_column(column, justify="right")
    for one in rows:
        table.add_row(one.model, *(shown(value) for value in numbers(one)))
    return table


def numbers(row: Row) -> tuple[float | int | None, ...]:
    """The row's numbers, in the order of COLUMNS."""
    percent = None if row.kv_share is None else 100 * row.kv_share
    of_steps = (row.requests_s, row.failures_s, row.batch, row.queue_ms, row.compute_ms, row.waiting)
    return (*of_steps, row.first_token_ms, row.tokens_s, percent)


def shown(value: float | int | None) -> str:
    """A number in few digits; a dash where there is none."""
    if value is None:
        return "-"
    return str(value) if isinstance(value, int) else f"{value:.1f}"
