"""`tritonkit trace`: one request through the real server, as the timeline of its steps.

In: a model repository that holds the pipeline, weights included. Out: a `Timeline`; the server has ended.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

from clients import Client, connect
from embedded import EmbeddedServer
from tritonkit.trace import Timeline, read_trace, trace_flags, wait_for_trace


def trace_request(
    repository: Path, pipeline: str, *, recording: Path, photo: Path, question: str, requests: int, cache: Path
) -> Timeline:
    """The request of middle length among so many, one after the other; two before them are not counted.

    Args:
        pipeline: `transcribe`, `detect` or an `assistant`.
        cache: where the embedded server keeps its backends.
    """
    with (
        tempfile.TemporaryDirectory() as folder,
        EmbeddedServer(repository, load=[pipeline], cache=cache, flags=trace_flags(Path(folder))) as server,
        connect(f"grpc://{server.grpc}", timeout_s=300) as client,
    ):
        config = ensemble_config(server.http, pipeline)
        timelines = []
        for number in range(requests + 2):
            _ask(client, pipeline, recording, photo, question)
            timelines.append(read_trace(wait_for_trace(Path(folder), pipeline, number), config))
    return middle(timelines[2:])


def middle(timelines: list[Timeline]) -> Timeline:
    """The one of middle length."""
    wanted = statistics.median_low(each.took_s for each in timelines)
    return next(each for each in timelines if each.took_s == wanted)


def ensemble_config(http: str, ensemble: str) -> dict[str, Any]:
    """The config of a loaded ensemble, from the server at this `host:port`."""
    with urllib.request.urlopen(f"http://{http}/v2/models/{ensemble}/config") as answer:
        config: dict[str, Any] = json.load(answer)
    return config


def _ask(client: Client, pipeline: str, recording: Path, photo: Path, question: str) -> None:
    if pipeline == "transcribe":
        client.transcribe(recording)
    elif pipeline == "detect":
        client.detect(photo)
    else:
        for _ in client.ask(recording, photo, question, temperature=0.0):
            pass
