"""One row of a batch, before anything of it is sent."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One piece of work.

    Attributes:
        key: what tells it from all others of its input, the same in every run.
        number: its place in the input, from 0.
        id: what the result is called: the `id` field, the file's path below the folder, or the number.
        fields: what the pipeline is asked with, such as {"audio": "talk.wav", "language": "en"}.
        problem: why the row can't be read; empty when it can.
    """

    key: str
    number: int
    id: str
    fields: Mapping[str, Any]
    problem: str = ""
