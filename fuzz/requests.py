"""Random requests to ensembles that load: what fails though no rule said that it may, and which words never come true.

In: a world. Out: for each ensemble what its requests gave, beside the rules' words about it and about the ensembles
inside it. A request is as the ensemble's own inputs allow it; a varying size, a batch, an optional input are chosen.
"""

from __future__ import annotations

import queue
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tritonclient.grpc as client
from tritonclient.utils import InferenceServerException, triton_to_np_dtype

from builder.catalog import Catalog, target
from builder.check import check_catalog
from builder.datatypes import DATA_TYPES
from builder.decoupling import is_decoupled
from builder.folder.reading import read_repository
from fuzz.compare import _is_ending, write
from fuzz.generate import World
from fuzz.oracle import serving
from fuzz.verdict import expected

# Rules whose word is that a request may fail.
FORETELLING = ("TK204", "TK308", "TK404", "TK405", "TK406", "TK407", "TK408", "TK503")
LIMIT_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one request gave: empty words where it succeeded."""

    model: str
    words: str
    told: tuple[str, ...]

    @property
    def is_foretold(self) -> bool:
        """Whether the failure needs no rule, or has one."""
        # How many rows a model makes, and the caller sends, is not told: the server's words name the limit.
        return bool(self.told) or "batch-size must be <=" in self.words


def ask(world: World, folder: Path, seed: int, per_ensemble: int = 3) -> tuple[Answer, ...]:
    """Serve a world and ask every ensemble that loads."""
    chance = random.Random(seed)
    root = write(folder / "world", [*world.pool, *(model for one in world.repositories for model in one)])
    ours = expected(root)
    repositories = [one for one in world.repositories if not any(_is_ending(ours[model.name]) for model in one)]
    root = write(folder / "world", [*world.pool, *(model for one in repositories for model in one)])
    catalog = read_repository(root, target("embedded"))
    told: dict[str, list[str]] = {}
    for finding in check_catalog(catalog):
        if finding.code in FORETELLING:
            told.setdefault(finding.model, []).append(finding.code)
    answers: list[Answer] = []
    with serving(root) as (server, verdicts), client.InferenceServerClient(server.grpc) as connection:
        for name, entry in catalog.entries.items():
            if not entry.is_ensemble or name not in verdicts.ready:
                continue
            inside = sorted({code for one in _inside(name, catalog) for code in told.get(one, ())})
            for _ in range(per_ensemble):
                words = _request(connection, name, catalog, chance)
                answers.append(Answer(model=name, words=words, told=tuple(inside)))
    return tuple(answers)


def _inside(name: str, catalog: Catalog) -> set[str]:
    """An ensemble and every model in it, at any depth."""
    entry = catalog.entries.get(name)
    steps = entry.ensemble_steps() if entry is not None else ()
    return {name}.union(*(_inside(step.get("model_name", ""), catalog) for step in steps))


def _keeps_sequences(name: str, catalog: Catalog) -> bool:
    inside = [catalog.entries[one] for one in _inside(name, catalog) if one in catalog.entries]
    return any("sequence_batching" in one.config for one in inside)


def _request(connection: Any, name: str, catalog: Catalog, chance: random.Random) -> str:
    entry = catalog.entries[name]
    most = entry.config.get("max_batch_size", 0)
    batch = [chance.randint(1, min(most, 3))] if most else []
    inputs = []
    for declared in entry.tensors("input").values():
        if declared.get("optional") and chance.random() < 0.5:
            continue
        shape = [*batch, *(chance.randint(1, 3) if size == -1 else size for size in declared["dims"])]
        inputs.append(_tensor(declared["name"], declared["data_type"], shape))
    options: dict[str, Any] = {}
    if _keeps_sequences(name, catalog):
        options = {"sequence_id": chance.randint(1, 2**31), "sequence_start": True, "sequence_end": True}
    try:
        if is_decoupled(name, catalog.entries):
            return _streamed(connection, name, inputs, options)
        connection.infer(name, inputs, client_timeout=LIMIT_S, **options)
        return ""
    except InferenceServerException as error:
        return str(error.message() or error)


def _tensor(name: str, data_type: str, shape: Sequence[int]) -> Any:
    word = DATA_TYPES[data_type].wire
    tensor = client.InferInput(name, list(shape), word)
    values = np.full(shape, b"x", object) if word == "BYTES" else np.zeros(shape, triton_to_np_dtype(word))
    tensor.set_data_from_numpy(values)
    return tensor


def _streamed(connection: Any, name: str, inputs: Sequence[Any], options: Mapping[str, Any]) -> str:
    """Words of the first error of a stream; empty when the final response came."""
    came: queue.Queue[tuple[Any, Any]] = queue.Queue()
    connection.start_stream(callback=lambda result, error: came.put((result, error)))
    try:
        connection.async_stream_infer(name, inputs, enable_empty_final_response=True, **options)
        while True:
            result, error = came.get(timeout=LIMIT_S)
            if error is not None:
                return str(error)
            if result.get_response().parameters["triton_final_response"].bool_param:
                return ""
    except queue.Empty:
        return "no answer: Deadline Exceeded"
    finally:
        connection.stop_stream(cancel_requests=True)
