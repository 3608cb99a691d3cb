"""What a worker is told, as one value."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """A worker's orders.

    Attributes:
        brokers: host:port, more after commas.
        inbound, outbound, dead_letter: topics; dead_letter gets what can't be done, with the reason.
        group: consumer group; workers of one group share the partitions.
        url: the Triton server, grpc://host:port.
        options: fields for every message that does not have them itself.
        files: folder that paths in messages start from and may not leave; None refuses paths.
        in_flight: messages worked on at once; no more are fetched while so many are.
        patience_s: how long the server may be away before the worker ends, to be started anew.
        drain_s: how long messages in flight may take at the end.
        exactly_once: results and offsets in transactions of the broker, instead of at least once.
        commit_s: the longest time between a result and the commit of its offset.
    """

    brokers: str
    inbound: str
    outbound: str
    dead_letter: str
    group: str
    url: str
    pipeline: str
    options: dict[str, Any] = field(default_factory=dict)
    files: Path | None = None
    in_flight: int = 16
    patience_s: float = 60.0
    timeout_s: float = 300.0
    drain_s: float = 30.0
    exactly_once: bool = False
    commit_s: float = 1.0
    session_timeout_s: float = 10.0
