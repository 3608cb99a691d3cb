"""Rules about what loads and then fails at some requests: sizes, batches and rows that do not fit."""

from __future__ import annotations

from collections.abc import Iterator

from builder.catalog import Catalog, Entry
from builder.findings import Problem, rule
from builder.shapes import CALLER, Doubt, doubts
from builder.tensors import dims_text

_WHY = "The server compares dims with every -1 as a match, and refuses the request when sizes differ"


@rule(
    "TK404",
    "error",
    "batch that one of the steps cannot take",
    why="The server loads it; a request with a larger batch fails (ENS-08)",
    server="accepts",
)
def effective_batch(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """An unbatched step that takes one row, or a fixed number, under an ensemble that promises batches."""
    most = entry.config.get("max_batch_size", 0)
    for one in doubts(entry, catalog):
        if one.kind == "batch" and one.found == CALLER:
            yield Problem(
                step=one.step,
                tensor=one.key,
                side="input",
                path=("max_batch_size",),
                found=f"{entry.name} takes batches of {most}, and {one.model} takes {one.wanted} of {one.tensor}",
                expected=f"batches of {one.wanted} at most are possible",
                fix=f"Write max_batch_size: {one.wanted} on {entry.name}, or give {one.model} a first size that varies",
            )


@rule("TK405", "advice", "size that varies meets a fixed size", why=_WHY, server="accepts")
def varying_size(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """Only requests in which the size happens to be the fixed one pass."""
    for one in doubts(entry, catalog):
        if one.kind == "size":
            yield Problem(
                step=one.step,
                tensor=one.key,
                side="input",
                path=_path(one),
                found=f"{one.tensor} is {dims_text(one.found)}, where -1 can be any size",
                expected=f"{one.model} takes {dims_text(one.wanted)} only",
                fix=f"Declare {dims_text(one.wanted)} at the other end too, if that is what it makes",
            )


@rule("TK406", "warning", "rows into a model that takes one", why=_WHY, server="accepts")
def rows_into_one(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """A batch that is not the caller's, but the rows of some tensor, into an unbatched model of fixed dims."""
    for one in doubts(entry, catalog):
        if one.kind == "batch" and one.found != CALLER:
            yield Problem(
                step=one.step,
                tensor=one.key,
                side="input",
                path=_path(one),
                found=f"{one.tensor} comes in {_batch(one.found)}",
                expected=f"{one.model} takes {one.wanted}",
                fix=f"Give {one.model} a first size that varies, or a max_batch_size",
            )


@rule("TK407", "error", "more rows than a batch can have", why=_WHY, server="accepts")
def rows_beyond_batch(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """An unbatched tensor whose fixed first size becomes a batch that is too large: every request fails.

    Where the first size varies nothing is told: the limit is the step's own, and the server's answer names it.
    """
    for one in doubts(entry, catalog):
        if one.kind == "rows" and isinstance(one.found, int):
            yield Problem(
                step=one.step,
                tensor=one.key,
                side="input",
                path=_path(one),
                found=f"{one.tensor} comes in {_batch(one.found)}, which become the batch of {one.model}",
                expected=f"{one.model} takes {one.wanted} at most",
                fix=f"Raise max_batch_size of {one.model} to {one.found}",
            )


@rule(
    "TK408",
    "warning",
    "inputs of one step with different batches",
    why=f"{_WHY}: input batch size does not match (ENS-09)",
    server="accepts",
)
def different_batches(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """A batching step needs the same number of rows in every input."""
    for one in doubts(entry, catalog):
        if one.kind == "batches":
            told = " and ".join(_batch(batch) for batch in one.found)
            yield Problem(
                step=one.step,
                tensor=one.key,
                side="input",
                path=("ensemble_scheduling", "step", one.step, "input_map"),
                found=f"its inputs come in {told}",
                expected=f"one batch for all inputs of {one.model} is needed",
                fix="Let all of them be batched or none, or join them in a model with max_batch_size 0",
            )


def _path(one: Doubt) -> tuple[str | int, ...]:
    return ("ensemble_scheduling", "step", one.step, "input_map", one.key)


def _batch(batch: int | str) -> str:
    if isinstance(batch, int):
        return f"{batch} row{'' if batch == 1 else 's'}"
    return "the caller's batch" if batch == CALLER else f"as many rows as {batch} has"
