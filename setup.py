"""Puts what the packages need beside their code into the wheel, below `shipped/` (shipped/__init__.py finds it)."""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

CODE = tuple(f"model_repository/*/1/*.{ending}" for ending in ("py", "jinja", "json"))
FILES = (*CODE, "samples/*", "docker/versions.env")


class WithShippedFiles(build_py):
    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        for file in (file for pattern in FILES for file in sorted(Path().glob(pattern))):
            into = Path(self.build_lib, "shipped", file)
            into.parent.mkdir(parents=True, exist_ok=True)
            self.copy_file(str(file), str(into))


setup(cmdclass={"build_py": WithShippedFiles})
