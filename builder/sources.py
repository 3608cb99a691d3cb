"""Python files of a person, run as they are now.

Python takes a compiled copy (`__pycache__`) for current if it is of a file of the same second and size: a 3 changed to
a 5 right after a build would not be seen. And the copies would lie in a model's folder.
"""

from importlib.machinery import SourceFileLoader
from types import CodeType


class SourceLoader(SourceFileLoader):
    """Compiles the file each time, and writes no compiled copy."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)
