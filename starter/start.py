"""Loads models in order, tells of each, and keeps decoupled ones alive.

In: a `Server` that answers and has loaded nothing, the models of its repository. Out: nothing; returns when the entry
models answer.
"""

from __future__ import annotations

import compileall
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from starter import stubs
from starter.errors import LoadError, StarterError
from starter.order import Model
from starter.server import Server

MOST_RESTARTS, RESTARTS_WITHIN_S = 5, 600.0
UNREADY_CHECKS = 3


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


@dataclass(kw_only=True)
class Keeper:
    """Looks after decoupled Python models: `look` starts again what died.

    Attributes:
        server, models: as for `start_models`.
        pid: the server's process.
        say: told of each restart.
    """

    server: Server
    models: Mapping[str, Model]
    pid: int
    say: Callable[[str], None]
    _living: dict[str, int] = field(default_factory=dict)
    _unready: dict[str, int] = field(default_factory=dict)
    _restarts: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._living = stubs.living(self.pid)

    def look(self) -> tuple[str, ...]:
        """Restart the models that died since the last look; returns their names.

        Raises:
            StarterError: one does not load again, or too many died: better to end and be started anew.
        """
        watched = [one.name for one in self.models.values() if one.is_decoupled and one.is_python]
        dead = dict.fromkeys(stubs.lost(self.pid, watched, self._living))
        for name in watched:
            if name in self._living:
                self._unready[name] = 0 if self.server.is_ready(name) else self._unready.get(name, 0) + 1
                if self._unready[name] >= UNREADY_CHECKS:
                    dead[name] = None
        for name in dead:
            self._restart(name)
        return tuple(dead)

    def _restart(self, name: str) -> None:
        now = time.monotonic()
        self._restarts = [at for at in self._restarts if now - at < RESTARTS_WITHIN_S] + [now]
        if len(self._restarts) > MOST_RESTARTS:
            raise StarterError(
                f"{name}: died again, {MOST_RESTARTS} restarts in {RESTARTS_WITHIN_S:g} s were not enough."
            )
        self.say(f"{name}  died; loading it again")
        self.server.unload(name)
        self.server.load(name)
        self._unready[name] = 0
        self._living = {**self._living, **{key: n for key, n in stubs.living(self.pid).items() if key == name}}
        self.say(f"{name}  ready again after {time.monotonic() - now:.1f} s")
