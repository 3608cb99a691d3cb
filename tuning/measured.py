"""Servers like one that was measured: how many of them for so many users.

In: the JSON that `tritonkit tune --measured` wrote. The rate that one server answers within the promise is simulated
anew from its service times; nothing else is assumed but what people ask.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tuning.errors import TuningError
from tuning.fleet import HOURS_PER_MONTH, peak_per_s
from tuning.network import Network, Station, Step
from tuning.search import highest_rate
from tuning.settings import Serving
from tuning.times import times_from


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredServer:
    """A server as it was measured: the pipeline, the promise, and requests a second that keep it, simulated."""

    pipeline: str
    promise_s: float
    cores: float
    per_s: float
    network: Network


def read_measured(path: Path) -> MeasuredServer:
    """The server of a file.

    Raises:
        TuningError: it is not what `tritonkit tune --measured` writes.
    """
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        network = network_from(told)
        promise_s = told["promise_ms"] / 1000
        return MeasuredServer(
            pipeline=told["pipeline"],
            promise_s=promise_s,
            cores=told["cores"],
            per_s=highest_rate(network, promise_s),
            network=network,
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        found = f"{type(error).__name__}: {error}"
        raise TuningError(
            str(path), found, "the JSON of `tritonkit tune` is needed", "Run it with --measured"
        ) from error


def network_from(told: Mapping[str, Any]) -> Network:
    """The network that was measured."""
    stations = {
        name: Station(serving=_serving(one["serving"]), times=times_from(one["times"]))
        for name, one in told["models"].items()
    }
    steps = tuple(Step(model=one["model"], after=tuple(one["after"])) for one in told["steps"])
    return Network(
        stations=stations,
        steps=steps,
        capacity={"cpu": told["cores"]},
        before_s=told["travel_ms"] / 2000,
        after_s=told["travel_ms"] / 2000,
        handling_s=told["handling_ms"] / 1000,
    )


def server_sums(found: MeasuredServer, assumed: Mapping[str, Any]) -> list[str]:
    """What one server answers, in words."""
    people = assumed["people"]
    times = ", ".join(
        f"{name} {1000 * station.times.mean(1):.3g} ms" for name, station in found.network.stations.items()
    )
    return [
        f"measured, one request alone: {times}",
        f"one server of {found.cores:g} cores keeps {1000 * found.promise_s:g} ms for 95 % up to {found.per_s:.3g}/s, "
        "by the model of the batcher",
        f"assumed: in the busiest hour {people['active_in_busiest_hour']:.0%} of the users send "
        f"{people['requests_per_active_hour']} requests each",
    ]


def servers_row(users: int, found: MeasuredServer, assumed: Mapping[str, Any], hour: float | None) -> dict[str, str]:
    """A number of users, and the servers they need, one in reserve."""
    rate = peak_per_s(users, assumed)
    servers = max(1, math.ceil(rate / found.per_s)) + int(assumed["spare_gpus"]) if found.per_s else 0
    row = {"users": f"{users:,}", "requests/s": f"{rate:.3g}", "servers": str(servers) if servers else "never"}
    return row if hour is None else {**row, "$ a month": f"{servers * hour * HOURS_PER_MONTH:,.0f}"}


def _serving(told: Mapping[str, Any]) -> Serving:
    return Serving(
        max_batch_size=told["max_batch_size"],
        dynamic=told["dynamic"],
        max_queue_delay_s=told["delay_us"] / 1e6,
        preferred=tuple(told["preferred"]),
        instances=told["instances"],
        threads=told["threads"],
    )
