"""Rules about `model.py`: what can be seen without running it (cases BAT-03, PYB-01, PYB-10, VLL-06)."""

from __future__ import annotations

from collections.abc import Iterator

from builder.catalog import Catalog, Entry
from builder.decoupling import is_decoupled
from builder.findings import Problem, rule
from builder.folder.pythonfile import PythonFile
from builder.rules.backends import backend_of, model_file
from builder.tensors import did_you_mean


@rule("TK831", "error", "model.py that is no Python", why="pb: the stub imports the file when the model loads")
def no_python(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """A syntax error."""
    for file, source in _sources(entry):
        if source.problem:
            yield Problem(
                file=file,
                line=source.problem_line,
                found=f"no Python: {source.problem}",
                expected="a file that Python can read is needed",
                fix="Correct the syntax",
            )


@rule("TK832", "error", "model.py without TritonPythonModel", why="pb: module has no attribute TritonPythonModel")
def no_class(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """The stub looks for a class of this name."""
    for file, source in _sources(entry):
        if not source.problem and not source.has_class:
            yield Problem(
                file=file,
                line=1,
                found="there is no class TritonPythonModel",
                expected="class TritonPythonModel with execute(self, requests) is needed",
                fix="Name the class so",
            )


@rule(
    "TK833",
    "error",
    "model without execute()",
    why="The server loads it; every request fails (seen on 2.51)",
    server="accepts",
)
def no_execute(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """`execute` is the one method that a model must have."""
    for file, source in _sources(entry):
        if source.has_class and source.is_known and "execute" not in source.methods:
            yield Problem(
                file=file,
                line=1,
                found="TritonPythonModel has no method execute",
                expected="execute(self, requests) is needed",
                fix="Write it; it returns one response for each request",
            )


@rule(
    "TK840",
    "error",
    "method with other arguments than the stub gives",
    why="pb: the stub calls initialize(args) and execute(requests)",
)
def other_arguments(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """`__init__` gets nothing, `initialize` one argument; a model whose methods want others does not load."""
    for file, source in _sources(entry):
        for name, line in source.unfitting:
            yield Problem(
                file=file,
                line=line,
                found=f"{name} cannot be called as the stub calls it",
                expected="__init__(self) and initialize(self, args) are needed",
                fix=f"Correct the arguments of {name}",
            )


@rule(
    "TK834",
    "error",
    "tensor name in model.py that the config does not have",
    why="get_input_tensor_by_name answers None for it; an output of another name is dropped silently (PYB-10)",
    server="accepts",
)
def other_tensor(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """Literal names in get_input_tensor_by_name and Tensor, against the config."""
    controls = [one.get("name", "") for one in entry.config.get("sequence_batching", {}).get("control_input", ())]
    states = [
        state.get(f"{side}_name", "")
        for state in entry.config.get("sequence_batching", {}).get("state", ())
        for side in ("input", "output")
    ]
    made = [name for one in entry.config.get("batch_input", ()) for name in one.get("target_name", ())]
    for file, source in _sources(entry):
        for side, mentions in (("input", source.inputs), ("output", source.outputs)):
            known = {*entry.tensors(side), *controls, *states, *made}
            if entry.may_gain(side) and not source.is_known or "auto_complete_config" in source.methods:
                continue
            for mention in mentions:
                # A model that calls others names their inputs by Tensor, too.
                calls_others = side == "output" and source.calls_models
                if mention.word not in known and not calls_others and known - {""}:
                    yield Problem(
                        tensor=mention.word,
                        side=side,
                        file=file,
                        line=mention.line,
                        found=f"the code names the {side} {mention.word}{did_you_mean(mention.word, known)}",
                        expected=f"one of {', '.join(sorted(known - {''}))} is needed",
                        fix=f"Correct the name here, or declare {mention.word} in the config",
                    )


@rule(
    "TK835",
    "error",
    "execute() that answers nothing",
    why="Without a response sender each request needs its response; the client waits for ever (BAT-03, seen on 2.51)",
    server="accepts",
)
def answers_nothing(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """`return None`, or no return, in a model that is not decoupled."""
    for file, source in _sources(entry):
        if source.returns_nothing is not None and source.is_known and not entry.is_decoupled:
            yield Problem(
                file=file,
                line=source.returns_nothing,
                found="execute returns None and asks for no response sender",
                expected="a list with one response for each request is needed",
                fix="Return [pb_utils.InferenceResponse(...) for each request]",
            )


@rule(
    "TK836",
    "error",
    "execute() that answers the first request only",
    why="Number of InferenceResponse objects do not match the number of InferenceRequest objects (BAT-03)",
    server="accepts",
)
def answers_first(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """`requests[0]` alone, and one response: wrong as soon as two requests come together."""
    batches = any(field in entry.config for field in ("dynamic_batching", "sequence_batching"))
    for file, source in _sources(entry):
        if source.first_request_only is not None:
            yield Problem(
                file=file,
                line=source.first_request_only,
                found="execute looks at requests[0] only"
                + ("" if batches else " (requests come one by one as long as there is no batcher)"),
                expected="one response for each request is needed, in order",
                fix="Loop: responses = [self.answer(request) for request in requests]",
            )


@rule(
    "TK837",
    "warning",
    "inputs may be on the GPU, and the code takes them as numpy",
    why="pb: as_numpy() raises on a GPU tensor; where a tensor lies cannot be predicted (PYB-01)",
    server="accepts",
)
def numpy_on_gpu(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """FORCE_CPU_ONLY_INPUT_TENSORS "no" beside an as_numpy() that asks nothing."""
    value = entry.config.get("parameters", {}).get("FORCE_CPU_ONLY_INPUT_TENSORS", {}).get("string_value")
    for file, source in _sources(entry):
        if value == "no" and source.as_numpy is not None and not source.looks_at_device:
            yield Problem(
                file=file,
                line=source.as_numpy,
                found='as_numpy() with FORCE_CPU_ONLY_INPUT_TENSORS "no"',
                expected="is_cpu() has to be asked first",
                fix="Write x.as_numpy() if x.is_cpu() else torch.from_dlpack(x.to_dlpack())",
            )


@rule(
    "TK838",
    "error",
    "plain exec() of a decoupled model",
    why="pb: the current BLS request call doesn't support the decoupled API (VLL-06)",
    server="accepts",
)
def single_call(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """A model called by name from code, without decoupled=True, that answers several times."""
    for file, source in _sources(entry):
        for mention in source.single_calls:
            if mention.word in catalog.entries and is_decoupled(mention.word, catalog.entries):
                yield Problem(
                    file=file,
                    line=mention.line,
                    found=f"{mention.word} is decoupled, and exec() expects one answer",
                    expected="exec(decoupled=True) and a loop over what it returns are needed",
                    fix="Write: for response in request.exec(decoupled=True): ...",
                )


@rule(
    "TK839",
    "warning",
    "model called from code that is not in the repository",
    why="pb: a BLS call to a model that is not loaded fails at the first request",
    server="accepts",
)
def absent_callee(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """`InferenceRequest(model_name="...")` with a name that no folder has."""
    for file, source in _sources(entry):
        for mention in source.called:
            if mention.word not in catalog.entries:
                yield Problem(
                    file=file,
                    line=mention.line,
                    found=f"the code calls {mention.word}{did_you_mean(mention.word, catalog.entries)}",
                    expected="a model of this repository is needed",
                    fix="Correct the name, or add the model",
                )


def _sources(entry: Entry) -> Iterator[tuple[str, PythonFile]]:
    """The model file of each version that the policy admits."""
    if entry.folder is None or backend_of(entry.config) != "python":
        return
    loaded = entry.loaded_versions()
    for version in entry.folder.versions:
        if version.number in loaded and version.name in entry.folder.python:
            yield f"{entry.name}/{version.name}/{model_file(entry.config)}", entry.folder.python[version.name]
