"""What tritonkit itself put into a repository: so that it never overwrites, and always cleans up, the right files.

`.tritonkit.json` lies in the repository and is committed with it: pipelines, and the hash of every generated or copied
file. `.tritonkit-weights.json` is of this machine alone: the linked files, as they were placed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from builder.errors import RepositoryError

MANIFEST = ".tritonkit.json"
WEIGHTS = ".tritonkit-weights.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a repository holds that is tritonkit's.

    Attributes:
        pipelines: by pipeline, the names of its ensembles and models.
        files: SHA-256 of generated and copied files, by path.
        links: (size, mtime in ns) of linked files as they were placed, by path.
    """

    pipelines: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    links: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def texts(self) -> dict[str, str]:
        """The two files as text; no file of links when there is none."""
        shared = {"about": "Written by `tritonkit build`: what in this folder is its own.", "files": self.files}
        texts = {MANIFEST: _json({**shared, "pipelines": {name: list(of) for name, of in self.pipelines.items()}})}
        if self.links:
            texts[WEIGHTS] = _json({path: list(stamp) for path, stamp in self.links.items()})
        return texts


def read_manifest(out: Path) -> Manifest:
    """The manifest of a repository; an empty one where there is none.

    Raises:
        RepositoryError: it is there and cannot be read.
    """
    try:
        shared = _read(out / MANIFEST)
        links = _read(out / WEIGHTS)
        return Manifest(
            pipelines={str(name): tuple(of) for name, of in shared.get("pipelines", {}).items()},
            files={str(path): str(digest) for path, digest in shared.get("files", {}).items()},
            links={path: (int(size), int(mtime)) for path, (size, mtime) in links.items()},
        )
    except (ValueError, AttributeError, TypeError) as error:
        raise RepositoryError(
            where=str(out),
            found=f"{MANIFEST} or {WEIGHTS} cannot be read ({error})",
            expected="the record that an earlier build left is needed",
            fix="Restore it from version control, or remove it with the files that were generated",
        ) from error


def sha256(content: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def _read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def _json(value: object) -> str:
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
