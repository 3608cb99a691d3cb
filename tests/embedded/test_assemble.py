"""The assembled backend folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from embedded.assemble import assemble_backends, copy_at_once
from embedded.wheel import Wheel, find_stub, find_wheel


@pytest.fixture
def wheel(tmp_path: Path) -> Wheel:
    """A wheel of small files."""
    backend = tmp_path / "wheel" / "python"
    backend.mkdir(parents=True)
    (backend / "libtriton_python.so").write_text("library")
    (backend / "__pycache__").mkdir()
    stub = tmp_path / "wheel" / "triton_python_backend_stub"
    stub.write_text("stub")
    stub.chmod(0o755)
    return Wheel(
        tritonserver=tmp_path / "server", python_backend=backend, stub=stub, caches=tmp_path, library_folders=()
    )


def test_the_folder_holds_both_backends(wheel: Wheel, tmp_path: Path) -> None:
    folder = assemble_backends(wheel, tmp_path / "cache")
    assert (folder / "python" / "libtriton_python.so").read_text() == "library"
    assert os.access(folder / "python" / "triton_python_backend_stub", os.X_OK)
    assert "class TritonPythonModel" in (folder / "onnxruntime" / "model.py").read_text()
    assert not (folder / "python" / "__pycache__").exists()


def test_the_same_content_is_not_copied_again(wheel: Wheel, tmp_path: Path) -> None:
    first = assemble_backends(wheel, tmp_path / "cache")
    before = (first / "python" / "libtriton_python.so").stat().st_ino
    second = assemble_backends(wheel, tmp_path / "cache")
    assert first == second
    assert (second / "python" / "libtriton_python.so").stat().st_ino == before
    assert [entry.name for entry in first.parent.iterdir()] == [first.name]


def test_other_content_is_another_folder(wheel: Wheel, tmp_path: Path) -> None:
    first = assemble_backends(wheel, tmp_path / "cache")
    wheel.stub.write_text("another stub")
    second = assemble_backends(wheel, tmp_path / "cache")
    assert first != second
    assert (first / "python" / wheel.stub.name).read_text() == "stub"


def test_a_copy_that_fails_leaves_nothing(tmp_path: Path) -> None:
    present = tmp_path / "present"
    present.write_text("x")
    with pytest.raises(FileNotFoundError):
        copy_at_once({"a": present, "b": tmp_path / "missing"}, tmp_path / "cache" / "folder")
    assert list((tmp_path / "cache").iterdir()) == []


def test_the_installed_wheel_has_what_is_needed() -> None:
    wheel = find_wheel()
    assert os.access(wheel.tritonserver, os.X_OK)
    assert (wheel.python_backend / "libtriton_python.so").is_file()
    assert all(folder.is_dir() for folder in wheel.library_folders)


def test_a_python_without_a_stub_is_told_which_have_one(tmp_path: Path) -> None:
    for minor in ("3.10", "3.9", "3.8"):
        (tmp_path / minor).mkdir()
    with pytest.raises(Exception, match=r"runs Python models with 3\.8, 3\.9, 3\.10\. Use one of these"):
        find_stub(tmp_path)
