"""Rules about sequence batching: controls, states, strategies (core: model_config_utils.cc)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from builder.catalog import Catalog, Entry
from builder.findings import Problem, rule
from builder.tensors import dims_text

_WHY = "core: model_config_utils.cc, the checks of sequence controls"
_STATE = "The server ends now and then, every other model with it, or refuses this one (seen on 2.51)"
MOST_SEQUENCES = 10_000_000
_PAIRS = ("int32_false_true", "fp32_false_true", "bool_false_true")
_CORRELATION = "CONTROL_SEQUENCE_CORRID"
_CORRELATION_TYPES = ("TYPE_UINT64", "TYPE_INT64", "TYPE_UINT32", "TYPE_INT32", "TYPE_STRING")


@rule("TK621", "error", "control tensor without a name, or with that of another", why=_WHY)
def control_names(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """Each control tensor has a name of its own."""
    counts: Counter[str] = Counter()
    for index, control in _controls(entry):
        name = control.get("name", "")
        counts[name] += 1
        if not name or counts[name] > 1:
            yield Problem(
                tensor=name or None,
                side="control input",
                path=("sequence_batching", "control_input", index, "name"),
                found=f"{name} is declared a second time" if name else "a control tensor has no name",
                expected="a name of its own is needed for each",
                fix="Put both kinds into one control_input, or rename it" if name else "Write its name",
            )


@rule("TK622", "error", "control of a sequence given twice", why=_WHY)
def control_kinds(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """START, END, READY and CORRID each belong to one tensor."""
    seen: set[str] = set()
    for index, inner, control in _kinds(entry):
        kind = str(control.get("kind", "CONTROL_SEQUENCE_START"))
        if kind in seen:
            yield Problem(
                path=("sequence_batching", "control_input", index, "control", inner, "kind"),
                found=f"{kind} is given a second time",
                expected="each kind can be given once",
                fix="Keep one of them",
            )
        seen.add(kind)


@rule("TK623", "error", "control without its two values", why=_WHY)
def control_values(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """START, END and READY need one pair of a false and a true value; CORRID none, and a type."""
    for index, inner, control in _kinds(entry):
        kind = control.get("kind", "CONTROL_SEQUENCE_START")
        given = [pair for pair in _PAIRS if control.get(pair)]
        path = ("sequence_batching", "control_input", index, "control", inner)
        if kind == _CORRELATION:
            if given:
                yield Problem(
                    path=(*path, given[0]),
                    found=f"{given[0]} for {_CORRELATION}",
                    expected="a correlation ID has no false and true",
                    fix=f"Take {given[0]} out and write data_type",
                )
            if control.get("data_type", "TYPE_INVALID") not in _CORRELATION_TYPES:
                yield Problem(
                    path=(*path, "data_type"),
                    found=f"the correlation ID is {control.get('data_type', 'of no type')}",
                    expected=f"one of {', '.join(_CORRELATION_TYPES)} is needed",
                    fix="Write data_type: TYPE_UINT64",
                )
        elif len(given) != 1 or len(control[given[0]]) != 2:
            shown = " and ".join(f"{pair}: {list(control[pair])}" for pair in given) or "no values"
            yield Problem(
                path=(*path, *given[:1]),
                found=f"{kind} has {shown}",
                expected="one of int32_false_true, fp32_false_true, bool_false_true, with two values, is needed",
                fix="Write int32_false_true: [ 0, 1 ]",
            )


@rule("TK624", "error", "slot utilization outside 0 to 1", why=_WHY)
def slot_utilization(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """A share of the slots."""
    share = entry.config.get("sequence_batching", {}).get("direct", {}).get("minimum_slot_utilization", 0.0)
    if share < 0 or share > 1:
        yield Problem(
            path=("sequence_batching", "direct", "minimum_slot_utilization"),
            found=f"minimum_slot_utilization is {share}",
            expected="a share from 0 to 1 is needed",
            fix="Write for example 0.5",
        )


@rule("TK625", "error", "initial state that does not fit its state", why=_STATE)
def initial_state(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """At most one, with a name, data, and the type and dims of the state, none of them -1."""
    for index, state in enumerate(entry.config.get("sequence_batching", {}).get("state", ())):
        initials = state.get("initial_state", ())
        path = ("sequence_batching", "state", index, "initial_state")
        for found, expected, fix in _mismatches(state, initials):
            yield Problem(
                tensor=state.get("input_name"), side="state", path=path, found=found, expected=expected, fix=fix
            )


def _mismatches(state: Mapping[str, Any], initials: Any) -> Iterator[tuple[str, str, str]]:
    if len(initials) > 1:
        yield f"there are {len(initials)} initial states", "one at most is possible", "Keep one of them"
        return
    for one in initials:
        dims, wanted = one.get("dims", ()), state.get("dims", ())
        if not one.get("name"):
            yield "the initial state has no name", "a name is needed", "Write its name"
        if one.get("data_type", "TYPE_INVALID") != state.get("data_type", "TYPE_INVALID"):
            yield (
                f"the initial state is {one.get('data_type', 'of no type')}",
                f"{state.get('data_type', 'the type of the state')} is needed",
                "Write the data_type of the state",
            )
        if len(dims) != len(wanted) or any(
            have != want for have, want in zip(dims, wanted, strict=False) if want != -1
        ):
            yield (
                f"the initial state has dims {dims_text(dims)}",
                f"{dims_text(wanted)} is needed",
                "Write the dims of the state",
            )
        elif any(size == -1 for size in dims):
            yield (
                f"the initial state has dims {dims_text(dims)}",
                "sizes that do not vary are needed",
                "Write the sizes",
            )
        if not any(field in one for field in ("zero_data", "data_file")):
            yield "the initial state has no data", "zero_data or data_file is needed", "Write zero_data: true"


@rule(
    "TK626",
    "warning",
    "state without name, type or dims",
    why="The server loads it; the first sequence fails",
    server="accepts",
)
def incomplete_state(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """A state needs input_name, output_name, data_type and dims."""
    for index, state in enumerate(entry.config.get("sequence_batching", {}).get("state", ())):
        missing = [field for field in ("input_name", "output_name", "data_type", "dims") if not state.get(field)]
        if missing:
            yield Problem(
                path=("sequence_batching", "state", index),
                found=f"a state without {', '.join(missing)}",
                expected="input_name, output_name, data_type and dims are needed",
                fix=f"Write {', '.join(missing)}",
            )


@rule(
    "TK627",
    "error",
    "more sequences at a time than memory holds",
    why="The server ends while it makes room for each, every other model with it: std::bad_alloc (seen on 2.51)",
)
def too_many_sequences(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """Every slot takes memory when the model loads: max_batch_size of them, or max_candidate_sequences."""
    batching = entry.config.get("sequence_batching")
    if batching is None:
        return
    for path, count in (
        (("max_batch_size",), entry.config.get("max_batch_size", 0)),
        (("sequence_batching", "oldest", "max_candidate_sequences"), _candidates(batching)),
    ):
        if count > MOST_SEQUENCES:
            yield Problem(
                path=path,
                found=f"{path[-1]} is {count} with sequence_batching",
                expected=f"fewer than {MOST_SEQUENCES} sequences at a time are needed",
                fix="Write the number of sequences that run at one time",
            )


def _candidates(batching: Mapping[str, Any]) -> int:
    return int(batching.get("oldest", {}).get("max_candidate_sequences", 0))


def _controls(entry: Entry) -> Iterator[tuple[int, Mapping[str, Any]]]:
    return iter(enumerate(entry.config.get("sequence_batching", {}).get("control_input", ())))


def _kinds(entry: Entry) -> Iterator[tuple[int, int, Mapping[str, Any]]]:
    for index, control_input in _controls(entry):
        for inner, control in enumerate(control_input.get("control", ())):
            yield index, inner, control
