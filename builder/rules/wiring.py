"""Rules about the wiring of an ensemble: models, maps, makers and users of each tensor."""

from __future__ import annotations

from collections.abc import Iterator

from builder.catalog import Catalog, Entry
from builder.findings import Problem, rule
from builder.graph import EnsembleTensor, Graph, cycle, make_graph
from builder.tensors import did_you_mean, nearest

_STATIC = "core: model_config_utils.cc, the checks of ensemble scheduling"
_MAPPED = "core: ensemble_utils.cc, ValidateTensorMapping"


@rule("TK301", "error", "ensemble without steps, or a step without its parts", why=_STATIC)
def incomplete(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """An ensemble needs steps, a step a model, at least one input and one output."""
    if not entry.ensemble_steps():
        yield Problem(
            path=("ensemble_scheduling", "step"),
            found="there are no steps",
            expected="at least one step is needed",
            fix="Add a step with model_name, input_map and output_map",
        )
    for index, step in enumerate(entry.ensemble_steps()):
        for field in ("model_name", "input_map", "output_map"):
            if not step.get(field):
                yield Problem(
                    step=index,
                    path=("ensemble_scheduling", "step", index, field),
                    found=f"{field} is missing or empty",
                    expected="model_name and at least one entry in input_map and output_map are needed",
                    fix=f"Write {field}",
                )


@rule("TK302", "error", "unknown model", why="core: ensemble X contains models that are not available")
def unknown_model(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """A step of a model that the repository does not have."""
    for index, step in enumerate(entry.ensemble_steps()):
        name = step.get("model_name", "")
        if name and name not in catalog.entries:
            others = [other for other in catalog.entries if other != entry.name]
            yield Problem(
                step=index,
                path=("ensemble_scheduling", "step", index, "model_name"),
                found=f"there is no model {name} in the repository{did_you_mean(name, others)}",
                expected=f"one of {', '.join(sorted(others)) or '(none)'} is needed",
                fix=f"Write {nearest(name, others) or 'the name of a model that exists'}",
            )


@rule("TK303", "error", "step maps an input that its model does not have", why=_MAPPED)
def unknown_input(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """A key of an input_map that is none of the model's inputs."""
    yield from _unknown_keys(entry, catalog, "input")


@rule("TK304", "error", "step maps an output that its model does not have", why=_MAPPED)
def unknown_output(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """A key of an output_map that is none of the model's outputs."""
    yield from _unknown_keys(entry, catalog, "output")


def _unknown_keys(entry: Entry, catalog: Catalog, side: str) -> Iterator[Problem]:
    for index, step in enumerate(entry.ensemble_steps()):
        model = catalog.entries.get(step.get("model_name", ""))
        if model is None or model.may_gain(side):
            continue
        known = list(model.tensors(side))
        for key, tensor in step.get(f"{side}_map", {}).items():
            if key not in known:
                match = nearest(key, known)
                yield Problem(
                    step=index,
                    tensor=key,
                    side=side,
                    path=("ensemble_scheduling", "step", index, f"{side}_map", key),
                    found=f"{model.name} has no {side} {key}{did_you_mean(key, known)}",
                    expected=f"one of {', '.join(known) or '(none)'} is needed",
                    fix=f'Map {match}: "{tensor}"' if match else f"Map one of the model's {side}s",
                )


@rule("TK305", "error", "input that a model needs is not mapped", why=_MAPPED)
def unmapped_input(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """A required input of a step's model without an ensemble tensor."""
    for index, step in enumerate(entry.ensemble_steps()):
        model = catalog.entries.get(step.get("model_name", ""))
        if model is None:
            continue
        mapped = step.get("input_map", {})
        known = model.tensors("input")
        misspelt = set() if model.may_gain("input") else {nearest(key, known) for key in mapped if key not in known}
        for name, declared in known.items():
            if name and name not in mapped and name not in misspelt and not declared.get("optional", False):
                yield Problem(
                    step=index,
                    tensor=name,
                    side="input",
                    path=("ensemble_scheduling", "step", index, "input_map"),
                    found=f"{name} is not mapped, and {model.name} needs it",
                    expected="every input that is not optional is needed",
                    fix=f"Map {name} to an ensemble tensor, or declare it optional if {model.name} can do without it",
                )


@rule("TK306", "error", "tensor that nobody makes", why=_STATIC)
def unmade(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """A tensor that a step reads, or the ensemble returns, and that no step makes and the caller does not send."""
    graph = make_graph(entry)
    for tensor in graph.tensors.values():
        if tensor.makers or tensor.is_input:
            continue
        makes = [name for name, other in graph.tensors.items() if other.makers or other.is_input]
        match = nearest(tensor.name, makes)
        hint = did_you_mean(tensor.name, makes)
        for end in tensor.users:
            yield Problem(
                step=end.step,
                tensor=end.key,
                side="input",
                path=("ensemble_scheduling", "step", end.step, "input_map", end.key),
                found=f"no step makes {tensor.name}, and it is no input of {entry.name}{hint}",
                expected=f"one of {', '.join(makes) or '(none)'} is needed",
                fix=f"Read {match}" if match else f"Add {tensor.name} to the inputs, or a step that makes it",
            )
        if tensor.is_output and not tensor.users:
            yield Problem(
                tensor=tensor.name,
                side="output",
                path=("output",),
                found=f"no step makes {tensor.name}{hint}",
                expected=f"one of {', '.join(makes) or '(none)'} is needed",
                fix=f"Return {match}" if match else "Map a step's output to it, or take it out of the outputs",
            )


@rule(
    "TK307",
    "error",
    "tensor with two makers",
    why=f"{_STATIC}; an input that a step writes over loads and then hangs (ENS-25)",
)
def two_makers(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """Two steps that make one tensor. The server refuses it."""
    for tensor in make_graph(entry).tensors.values():
        for end in tensor.makers[1:]:
            first = tensor.makers[0]
            yield Problem(
                step=end.step,
                tensor=end.key,
                side="output",
                path=("ensemble_scheduling", "step", end.step, "output_map", end.key),
                found=f"{tensor.name} is already made by {_step(entry, first.step, first.model)}",
                expected="every ensemble tensor can be made once",
                fix=f"Map {end.key} to a tensor of another name",
            )


@rule(
    "TK308",
    "error",
    "input that a step writes over",
    why="The server loads it, and every request hangs (ENS-25)",
    server="accepts",
)
def overwritten_input(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """A step that makes a tensor which the caller sends."""
    for tensor in make_graph(entry).tensors.values():
        if tensor.is_input:
            for end in tensor.makers:
                yield Problem(
                    step=end.step,
                    tensor=end.key,
                    side="output",
                    path=("ensemble_scheduling", "step", end.step, "output_map", end.key),
                    found=f"{tensor.name} is an input of {entry.name} already",
                    expected="a tensor that the caller sends cannot be made by a step",
                    fix=f"Map {end.key} to a tensor of another name",
                )


@rule("TK309", "error", "steps in a circle", why=_STATIC)
def circle(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """Steps that wait for each other. The server only says that an output is not written."""
    path = cycle(make_graph(entry))
    if path is not None:
        yield Problem(
            path=("ensemble_scheduling", "step"),
            found=f"steps wait for each other: {' -> '.join(path)}",
            expected="steps that follow from the inputs are needed",
            fix=f"Let the first of these steps read something else than {path[0]}",
        )


@rule("TK310", "error", "input that no step uses", why=_STATIC)
def unused_input(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """An input of the ensemble that nothing reads."""
    graph = make_graph(entry)
    for tensor in graph.tensors.values():
        if tensor.is_input and not tensor.users and not (tensor.makers and tensor.is_output):
            yield Problem(
                tensor=tensor.name,
                side="input",
                path=("input",),
                found=f"no step reads {tensor.name}{did_you_mean(tensor.name, _unmade_names(graph))}",
                expected="every input must be read by a step",
                fix=_places_for(tensor, entry, catalog),
            )


@rule("TK311", "error", "tensor that nobody uses", why=_STATIC)
def unused_tensor(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """A step's output that is mapped, and that nothing reads."""
    graph = make_graph(entry)
    for tensor in graph.tensors.values():
        if tensor.makers and not tensor.users and not tensor.is_output and not tensor.is_input:
            end = tensor.makers[0]
            yield Problem(
                step=end.step,
                tensor=end.key,
                side="output",
                path=("ensemble_scheduling", "step", end.step, "output_map", end.key),
                found=f"nothing reads {tensor.name}{did_you_mean(tensor.name, _unmade_names(graph))}",
                expected="every mapped output must be read by a step or returned",
                fix=f"Take {end.key} out of output_map, or add {tensor.name} to the outputs",
            )


@rule("TK312", "error", "ensembles that contain each other", why="core: circular dependency between ensembles")
def ensembles_in_a_circle(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """An ensemble that is, at some depth, a step of itself."""
    path = _way_back(entry.name, entry.name, catalog, ())
    if path is not None:
        yield Problem(
            path=("ensemble_scheduling", "step"),
            found=f"it contains itself: {' -> '.join((entry.name, *path))}",
            expected="ensembles that do not contain each other are needed",
            fix=f"Let {path[0] if len(path) > 1 else 'the step'} run another model",
        )


@rule(
    "TK313",
    "error",
    "step without a version that exists",
    why="core: required version N is not loaded; an absent model_version means 0 (ENS-11)",
)
def unknown_version(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """A step whose model_version is left out, or is not there."""
    for index, step in enumerate(entry.ensemble_steps()):
        version = step.get("model_version", 0)
        model = catalog.entries.get(step.get("model_name", ""))
        if version == -1 or model is None:
            continue
        there = None if model.versions is None else model.loaded_versions()
        if version < 1 if there is None else version not in there:
            known = ", ".join(str(one) for one in there) if there else "the numbers of its version folders"
            yield Problem(
                step=index,
                path=("ensemble_scheduling", "step", index, "model_version"),
                found="model_version is left out"
                if version == 0
                else f"{model.name} has no version {version}"
                if version not in (model.versions or ())
                else f"the version policy of {model.name} does not load version {version}",
                expected=f"-1 for the latest version, or one of {known}, is needed",
                fix="Write model_version: -1",
            )


@rule("TK315", "error", "step maps an output that its model declares twice", why=_MAPPED)
def doubled_output(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """The model itself loads (TK204); an ensemble that uses the output does not."""
    for index, step in enumerate(entry.ensemble_steps()):
        model = catalog.entries.get(step.get("model_name", ""))
        names = [one.get("name") for one in model.config.get("output", ())] if model is not None else []
        for key in step.get("output_map", {}):
            if names.count(key) > 1 and model is not None:
                yield Problem(
                    step=index,
                    tensor=key,
                    side="output",
                    path=("ensemble_scheduling", "step", index, "output_map", key),
                    found=f"{model.name} declares {key} {names.count(key)} times",
                    expected="an output that is declared once is needed",
                    fix=f"Keep one {key} in {model.name}",
                )


def _step(entry: Entry, index: int, model: str) -> str:
    return f"step {entry.step_number(index)} ({model})"


def _unmade_names(graph: Graph) -> list[str]:
    return [name for name, tensor in graph.tensors.items() if not tensor.makers and not tensor.is_input]


def _places_for(tensor: EnsembleTensor, entry: Entry, catalog: Catalog) -> str:
    """Optional inputs of the steps that nobody has mapped: where an unused input could go."""
    places = [
        f"{name} of {_step(entry, index, step.get('model_name', ''))}"
        for index, step in enumerate(entry.ensemble_steps())
        for name, declared in _tensors(catalog, step.get("model_name", "")).items()
        if declared.get("optional") and name not in step.get("input_map", {})
    ]
    hint = f" ({', '.join(places)} could take it)" if places else ""
    return f"Map {tensor.name} to a step's input{hint}, or take it out"


def _tensors(catalog: Catalog, model: str) -> dict[str, dict[str, object]]:
    entry = catalog.entries.get(model)
    return {} if entry is None else {name: dict(one) for name, one in entry.tensors("input").items()}


def _way_back(start: str, here: str, catalog: Catalog, seen: tuple[str, ...]) -> tuple[str, ...] | None:
    entry = catalog.entries.get(here)
    if entry is None or here in seen:
        return None
    for step in entry.ensemble_steps():
        name = step.get("model_name", "")
        if name == start:
            return (name,)
        further = _way_back(start, name, catalog, (*seen, here))
        if further is not None:
            return (name, *further)
    return None
