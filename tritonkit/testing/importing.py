"""Imports model.py and the files beside it as the server does, each model apart from all others.

The server appends the version folder and the model folder to the end of `sys.path`, in a process per model. Here
several models, and several versions of one, live in one process: their neighbours never stay in `sys.modules`, so that
two models may each have a `helper.py`. Imports inside functions work too, from any thread.
"""

from __future__ import annotations

import builtins
import functools
import importlib.util
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import FileFinder, ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from builder.sources import SourceLoader
from tritonkit.testing.errors import LoadError

# Names by which a model reaches its backend.
BACKEND_MODULES = ("triton_python_backend_utils", "c_python_backend_utils")
_importing = threading.RLock()


class ModelModules:
    """The modules of one model: `model` is its model.py."""

    def __init__(self, version_folder: Path, backend: ModuleType) -> None:
        self.folders = (version_folder, version_folder.parent)
        self.backend = backend
        self.private: dict[str, ModuleType] = {}
        self.builtins = {**vars(builtins), "__import__": self.import_}
        self._finders = [self.finder(str(folder)) for folder in self.folders]
        self.model = self._load_model(version_folder / "model.py")

    def _load_model(self, path: Path) -> ModuleType:
        if not path.is_file():
            raise LoadError(f"Python model file not found in '{path}'")
        name = f"{path.parent.name}.model"
        spec = importlib.util.spec_from_file_location(name, path, loader=self.loader(name, str(path)))
        assert spec is not None and spec.loader is not None  # a loader was given
        module = importlib.util.module_from_spec(spec)
        self.private[name] = module
        with self._visible():
            spec.loader.exec_module(module)
        return module

    def finder(self, folder: str) -> FileFinder:
        """Finds Python files in one folder, for our loader."""
        return FileFinder(folder, (self.loader, [".py"]))  # type: ignore[arg-type]

    def loader(self, name: str, path: str) -> SourceLoader:
        """A loader whose modules import by `import_`."""
        return _Loader(name, path, self.builtins)

    def import_(
        self,
        name: str,
        globals: Any = None,
        locals: Any = None,
        fromlist: Any = (),
        level: int = 0,
    ) -> Any:
        """The model's own `__import__`: its backend, its neighbours, then everything else."""
        top = name.partition(".")[0]
        if level == 0 and top in BACKEND_MODULES:
            return self.backend
        if level == 0 and not self.is_neighbour(top):
            return builtins.__import__(name, globals, locals, fromlist, level)
        with self._visible():
            return builtins.__import__(name, globals, locals, fromlist, level)

    @functools.cache  # noqa: B019 - lives as long as the model
    def is_neighbour(self, name: str) -> bool:
        """Whether this name means a file of the model: a library of the same name comes first, as on the server."""
        if self._find(name) is None:
            return False
        if name in sys.builtin_module_names:
            return False
        elsewhere = PathFinder.find_spec(name)
        return elsewhere is None or elsewhere.origin is None or Path(elsewhere.origin).parent in self.folders

    def _find(self, name: str) -> ModuleSpec | None:
        found = (finder.find_spec(name) for finder in self._finders)
        # A folder without code is found as a namespace; the server would take it too, and nobody means it.
        return next((spec for spec in found if spec is not None and spec.origin is not None), None)

    @contextmanager
    def _visible(self) -> Iterator[None]:
        """While this lasts, the model's modules can be imported and are found again."""
        with _importing:
            hidden = {name: sys.modules[name] for name in self.private if name in sys.modules}
            sys.modules.update(self.private)
            before = set(sys.modules)
            sys.meta_path.insert(0, self)
            try:
                yield
            finally:
                sys.meta_path.remove(self)
                for name in [name for name in sys.modules if name not in before or name in self.private]:
                    if isinstance(getattr(sys.modules[name], "__loader__", None), _Loader):
                        self.private[name] = sys.modules.pop(name)
                sys.modules.update(hidden)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """As an entry of `sys.meta_path`: the model's neighbours, and what lies in packages among them."""
        if path is None:
            return self._find(name) if self.is_neighbour(name) else None
        if name.partition(".")[0] not in self.private:
            return None
        found = (self.finder(folder).find_spec(name) for folder in path)
        return next((spec for spec in found if spec is not None), None)


class _Loader(SourceLoader):
    """Gives the module the builtins of its model before its code runs."""

    def __init__(self, name: str, path: str, its_builtins: dict[str, Any]) -> None:
        super().__init__(name, path)
        self._builtins = its_builtins

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__["__builtins__"] = self._builtins
        super().exec_module(module)
