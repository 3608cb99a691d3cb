"""What a `model.py` says of itself: class, methods, the tensor names it asks for by literal. Parsed, never run.

In: the bytes of the file. Out: a `PythonFile`. Where a name is computed nothing is known, and nothing is claimed.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

CLASS = "TritonPythonModel"
MAX_BYTES = 2 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """A literal in the source, and its line."""

    word: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonFile:
    """What a `model.py` says.

    Attributes:
        problem, problem_line: why it is no Python, where it is none.
        has_class: whether `TritonPythonModel` is defined, assigned or imported here.
        methods: names of the methods of the class, where it is written in this file.
        is_known: whether class and methods are all there is: no base class, no metaclass, no decorator on the class.
        unfitting: methods that cannot take the arguments that the stub gives, with their line.
        inputs, outputs: literal names given to `get_input_tensor_by_name` and to `Tensor`.
        uses_sender: whether a response sender is asked for anywhere.
        returns_nothing: line of `execute` where it returns None in every case, by all that can be seen.
        first_request_only: line where `execute` answers `requests[0]` alone, with no loop over the requests.
        single_calls: models called by `InferenceRequest(model_name="...")` and a plain `exec()`.
        called: all models called by such a literal name; `calls_models` says whether any is called at all.
        looks_at_device: whether `is_cpu`, `to_dlpack` or `from_dlpack` is used.
        as_numpy: line of the first `as_numpy()`.
        imports: top-level modules imported, with the line.
    """

    problem: str = ""
    problem_line: int | None = None
    has_class: bool = False
    methods: frozenset[str] = frozenset()
    is_known: bool = False
    unfitting: tuple[tuple[str, int], ...] = ()
    inputs: tuple[Mention, ...] = ()
    outputs: tuple[Mention, ...] = ()
    uses_sender: bool = False
    returns_nothing: int | None = None
    first_request_only: int | None = None
    single_calls: tuple[Mention, ...] = ()
    called: tuple[Mention, ...] = ()
    calls_models: bool = False
    looks_at_device: bool = False
    as_numpy: int | None = None
    imports: tuple[Mention, ...] = ()

    @property
    def completes_config(self) -> bool:
        """Whether the model may add to its config when it loads."""
        return not self.is_known or "auto_complete_config" in self.methods


@lru_cache(maxsize=4096)
def read_python(source: bytes) -> PythonFile:
    """What the source says."""
    if len(source) > MAX_BYTES:
        return PythonFile(has_class=True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except SyntaxError as error:
        return PythonFile(problem=error.msg or "no Python", problem_line=error.lineno)
    except (ValueError, RecursionError, MemoryError) as error:
        return PythonFile(problem=str(error) or type(error).__name__)
    try:
        return _described(tree)
    except RecursionError:
        return PythonFile(has_class=True)


def _described(tree: ast.Module) -> PythonFile:
    nodes = list(ast.walk(tree))
    written = next((one for one in nodes if isinstance(one, ast.ClassDef) and one.name == CLASS), None)
    calls = [one for one in nodes if isinstance(one, ast.Call)]
    execute = _method(written, "execute") if written is not None else None
    attributes = {_called(call) for call in calls}
    sends = "get_response_sender" in attributes
    return PythonFile(
        has_class=written is not None or _is_bound(nodes),
        methods=frozenset(
            one.name
            for one in (written.body if written else ())
            if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)
        ),
        is_known=written is not None and not written.bases and not written.keywords and not written.decorator_list,
        unfitting=tuple(_unfitting(written)) if written is not None else (),
        inputs=tuple(_literals(calls, "get_input_tensor_by_name", 1)),
        outputs=tuple(_literals(calls, "Tensor", 0)),
        uses_sender=sends,
        returns_nothing=None if execute is None or sends else _returns_nothing(execute),
        first_request_only=None if execute is None else _first_request_only(execute),
        single_calls=tuple(_called_models(calls)) if _is_plainly_executed(calls) else (),
        called=tuple(_called_models(calls)),
        calls_models="InferenceRequest" in attributes,
        looks_at_device=bool(attributes & {"is_cpu", "to_dlpack", "from_dlpack"}),
        as_numpy=next((call.lineno for call in calls if _called(call) == "as_numpy"), None),
        imports=tuple(_imports(tree)),
    )


def _called(call: ast.Call) -> str:
    function = call.func
    return (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )


def _is_bound(nodes: list[ast.AST]) -> bool:
    """Whether the class's name comes from an import or an assignment."""
    for one in nodes:
        if isinstance(one, ast.ImportFrom | ast.Import):
            if any((alias.asname or alias.name) in (CLASS, "*") for alias in one.names):
                return True
        elif (
            isinstance(one, ast.Name)
            and one.id == CLASS
            and isinstance(one.ctx, ast.Store)
            or isinstance(one, ast.FunctionDef)
            and one.name == CLASS
        ):
            return True
    return False


def _method(written: ast.ClassDef, name: str) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    for one in written.body:
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) and one.name == name:
            return one
    return None


def _unfitting(written: ast.ClassDef) -> Iterator[tuple[str, int]]:
    for name, count in (("__init__", 1), ("initialize", 2)):
        method = _method(written, name)
        if method is None or method.decorator_list:
            continue
        plain = [*method.args.posonlyargs, *method.args.args]
        required = len(plain) - len(method.args.defaults)
        missing = any(default is None for default in method.args.kw_defaults)
        if missing or required > count or (len(plain) < count and method.args.vararg is None):
            yield name, method.lineno


def _literals(calls: list[ast.Call], function: str, position: int) -> Iterator[Mention]:
    for call in calls:
        if _called(call) != function:
            continue
        given = call.args[position] if len(call.args) > position else None
        if given is None:
            given = next((one.value for one in call.keywords if one.arg in ("name", "input_name")), None)
        if isinstance(given, ast.Constant) and isinstance(given.value, str):
            yield Mention(word=given.value, line=given.lineno)


def _own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """Nodes of a function without those of functions inside it."""
    for child in ast.iter_child_nodes(function):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            yield child
            yield from _own_nodes(child)


def _returns_nothing(execute: ast.FunctionDef | ast.AsyncFunctionDef) -> int | None:
    nodes = list(_own_nodes(execute))
    if any(isinstance(one, ast.Yield | ast.YieldFrom | ast.Raise) for one in nodes):
        return None
    returned = [one for one in nodes if isinstance(one, ast.Return)]
    if any(
        one.value is not None and not (isinstance(one.value, ast.Constant) and one.value.value is None)
        for one in returned
    ):
        return None
    return returned[-1].lineno if returned else execute.lineno


def _first_request_only(execute: ast.FunctionDef | ast.AsyncFunctionDef) -> int | None:
    """Line of `requests[0]` where the requests are used in no other way and one literal response is returned."""
    names = [argument.arg for argument in execute.args.args if argument.arg not in ("self", "cls")]
    if len(names) != 1:
        return None
    uses = [one for one in ast.walk(execute) if isinstance(one, ast.Name) and one.id == names[0]]
    subscripts = [
        one
        for one in ast.walk(execute)
        if isinstance(one, ast.Subscript)
        and isinstance(one.value, ast.Name)
        and one.value.id == names[0]
        and isinstance(one.slice, ast.Constant)
        and one.slice.value == 0
    ]
    single = any(
        isinstance(one, ast.Return) and isinstance(one.value, ast.List) and len(one.value.elts) == 1
        for one in ast.walk(execute)
    )
    return subscripts[0].lineno if subscripts and len(subscripts) == len(uses) and single else None


def _is_plainly_executed(calls: list[ast.Call]) -> bool:
    """Whether some `exec()` or `async_exec()` asks for one answer, and none asks for several."""
    executed = [
        call for call in calls if _called(call) in ("exec", "async_exec") and isinstance(call.func, ast.Attribute)
    ]
    return bool(executed) and not any(one.arg == "decoupled" for call in executed for one in call.keywords)


def _called_models(calls: list[ast.Call]) -> Iterator[Mention]:
    for call in calls:
        for one in call.keywords if _called(call) == "InferenceRequest" else ():
            if one.arg == "model_name" and isinstance(one.value, ast.Constant) and isinstance(one.value.value, str):
                yield Mention(word=one.value.value, line=call.lineno)


def _imports(tree: ast.Module) -> Iterator[Mention]:
    for one in tree.body:
        if isinstance(one, ast.Import):
            yield from (Mention(word=alias.name.split(".")[0], line=one.lineno) for alias in one.names)
        elif isinstance(one, ast.ImportFrom) and one.module and not one.level:
            yield Mention(word=one.module.split(".")[0], line=one.lineno)
