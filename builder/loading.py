"""Pipelines by name: shipped ones, and those of a person's own file.

In: `assistant`, `path/to/file.py`, or `path/to/file.py:name`, and options such as the checkpoint of each model.
Out: `Pipeline`s. Options go to the functions that take them; an option that nobody takes is refused.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager
from pathlib import Path
from types import ModuleType

from builder import pipelines as shipped
from builder.errors import BuildError, DeclarationError
from builder.pipeline import Pipeline
from builder.sources import SourceLoader
from builder.tensors import did_you_mean
from builder.tuned import read_tuned, with_tuned


def shipped_names() -> tuple[str, ...]:
    """The names of the shipped pipelines."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(shipped.__path__)))


def load_pipelines(names: Sequence[str], options: Mapping[str, str]) -> tuple[Pipeline, ...]:
    """The pipelines of these names, or all shipped ones; options that a function takes are given to it.

    What `tuned.toml` beside them says of their models is in them.

    Raises:
        DeclarationError: a name leads to no pipeline, or nobody takes an option.
    """
    found: list[Pipeline] = []
    taken: set[str] = set()
    for name in names or shipped_names():
        if ".py" in name:
            file = _file_of(name)
            with _beside(file):
                made = _made(_from_file(file, name.partition(".py:")[2]), options, taken)
        else:
            made = _made(_shipped(name), options, taken)
        tuned = read_tuned(home_of(name))
        found += [with_tuned(one, tuned) for one in made]
    for option in options.keys() - taken if names else ():
        raise DeclarationError(
            where=f"option {option}",
            found=f"no pipeline named takes {option}",
            expected="an option that one of the pipelines has is needed",
            fix="Take it out, or name a pipeline with such a model",
        )
    return tuple(found)


def _made(
    makers: Sequence[Pipeline | Callable[..., Pipeline]], options: Mapping[str, str], taken: set[str]
) -> list[Pipeline]:
    """The pipelines themselves; the options that a function took are added to `taken`."""
    found = []
    for maker in makers:
        if isinstance(maker, Pipeline):
            found.append(maker)
            continue
        wanted = {key: value for key, value in options.items() if key in inspect.signature(maker).parameters}
        taken.update(wanted)
        made = maker(**wanted)
        if not isinstance(made, Pipeline):
            raise DeclarationError(
                where=maker.__name__,
                found=f"it returned {type(made).__name__}",
                expected="a function that returns a Pipeline is needed",
                fix="Return the Pipeline",
            )
        found.append(made)
    return found


def home_of(name: str) -> Path:
    """The folder of the file in which a pipeline is declared."""
    return _file_of(name).parent if ".py" in name else Path(shipped.__path__[0])


def _shipped(name: str) -> list[Callable[..., Pipeline]]:
    if name not in shipped_names():
        raise DeclarationError(
            where=name,
            found=f"no shipped pipeline has this name{did_you_mean(name, shipped_names())}",
            expected=f"one of {', '.join(shipped_names())}, or the path of a Python file, is needed",
            fix="Name a shipped pipeline, or path/to/file.py",
        )
    return [getattr(importlib.import_module(f"builder.pipelines.{name}"), name)]


def _file_of(name: str) -> Path:
    path, _, _ = name.partition(".py:")
    return Path(path if path.endswith(".py") else f"{path}.py").absolute()


@contextmanager
def _beside(file: Path) -> Iterator[None]:
    """Relative paths in a pipeline's file, and modules it imports, lie beside it."""
    if not file.is_file():
        raise DeclarationError(
            where=str(file),
            found="there is no such file",
            expected="a Python file with a pipeline is needed",
            fix="Correct the path",
        )
    sys.path.insert(0, str(file.parent))
    try:
        with chdir(file.parent):
            yield
    finally:
        sys.path.remove(str(file.parent))


def _from_file(file: Path, wanted: str) -> list[Pipeline | Callable[..., Pipeline]]:
    """The pipeline or function of the wanted name, or every pipeline of the file."""
    module = _module(file)
    pipelines: dict[str, Pipeline | Callable[..., Pipeline]] = {
        variable: value for variable, value in vars(module).items() if isinstance(value, Pipeline)
    }
    if wanted:
        pipelines |= {value.name: value for value in pipelines.values() if isinstance(value, Pipeline)}
        if callable(getattr(module, wanted, None)):
            pipelines[wanted] = getattr(module, wanted)
        pipelines = {wanted: pipelines[wanted]} if wanted in pipelines else {}
    if not pipelines:
        raise DeclarationError(
            where=str(file),
            found=f"there is no Pipeline {f'named {wanted} ' if wanted else ''}in the file",
            expected="a variable that holds one, or after a colon the name of a function that returns one, is needed",
            fix="Write PIPELINE = Pipeline(...) in the file",
        )
    return list({id(value): value for value in pipelines.values()}.values())


def _module(path: Path) -> ModuleType:
    name = f"_pipeline_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path, loader=SourceLoader(name, str(path)))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except BuildError:
        raise
    except Exception as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        raise DeclarationError(
            where=f"{path.name}, line {lines[-1]}" if lines else path.name,
            found=f"{type(error).__name__}: {error}",
            expected="a file that Python can run is needed",
            fix="Correct that line",
        ) from error
    finally:
        del sys.modules[spec.name]
    return module
