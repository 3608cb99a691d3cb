"""Loads models in order, and tells of each.

In: a `Server` that answers and has loaded nothing, the models of its repository. Out: nothing; returns when the entry
models answer.
"""

from __future__ import annotations

import compileall
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from starter.errors import LoadError
from starter.order import Model
from starter.server import Server


def compile_served_code(repository: Path, models: Iterable[Model]) -> None:
    """Write the byte code of Python models beside their code, where the repository can be written.

    Otherwise the first process of a model writes it, the folder looks changed, and loading an ensemble loads the model
    a second time: two engines on one GPU.
    """
    for model in models:
        folder = repository / model.name
        if model.is_python and os.access(folder, os.W_OK):
            for version in (one for one in folder.iterdir() if one.name.isdigit()):
                compileall.compile_dir(str(version), maxlevels=0, quiet=2)


def start_models(
    server: Server,
    models: Mapping[str, Model],
    order: Sequence[str],
    entry: Sequence[str],
    say: Callable[[str], None],
) -> None:
    """Load the models of `order` one at a time; return once each of `entry` can be asked.

    Raises:
        StarterError: a model does not load, or an entry model cannot be asked.
    """
    width = max(len(name) for name in order)
    for number, name in enumerate(order, 1):
        line = f"{number:>{len(str(len(order)))}}/{len(order)}  {name:<{width}}"
        kind = "" if models[name].kind == "model" else f" ({models[name].kind})"
        say(f"{line}  loading{kind}")
        began = time.monotonic()
        server.load(name)
        say(f"{line}  ready after {time.monotonic() - began:.1f} s")
    for name in entry:
        if not server.is_ready(name):
            raise LoadError(f"{name}: everything is loaded, and yet it cannot be asked. Look into the server's log.")
