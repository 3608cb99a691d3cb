"""What a Python model needs installed, where that is not what the server's own Python has.

In: requirements as pip takes them. Out: the name of the packed environment that holds them, below the exports. Equal
requirements have equal names, so models share an environment, and nothing is made twice.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterable
from pathlib import Path

FOLDER = "environments"
# The stub that runs the model hands it numpy arrays, and was built for numpy before 2.
ALWAYS = ("numpy<2",)
_NAME = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")


def all_requirements(requirements: Iterable[str]) -> tuple[str, ...]:
    """The requirements in order, with what every model needs."""
    given = sorted({" ".join(one.split()) for one in requirements})
    names = {name_of(one) for one in given}
    return tuple(given) + tuple(one for one in ALWAYS if name_of(one) not in names)


def environment_path(requirements: Iterable[str]) -> Path:
    """Where the packed environment lies below the folder of exports; for this minor version of Python."""
    text = "\n".join((f"python {sys.version_info.major}.{sys.version_info.minor}", *all_requirements(requirements)))
    return Path(FOLDER) / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.tar.gz"


def name_of(requirement: str) -> str:
    """`onnxruntime` of `onnxruntime==1.20.1`, as pip compares names; the whole text where it has no name in front."""
    match = _NAME.match(requirement)
    return re.sub(r"[-_.]+", "-", match[1]).lower() if match else requirement
