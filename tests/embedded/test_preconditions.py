"""What must be true of the machine, and what is said when it is not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from embedded import preconditions
from embedded.errors import CannotStart


def test_this_machine_will_do() -> None:
    preconditions.check_machine()


@pytest.mark.parametrize(
    ("system", "machine", "libc", "words"),
    [
        ("darwin", "arm64", ("", ""), "darwin on arm64: the embedded server needs Linux x86_64"),
        ("linux", "aarch64", ("glibc", "2.39"), "linux on aarch64"),
        ("linux", "x86_64", ("glibc", "2.31"), "glibc 2.31: the embedded server needs glibc 2.35"),
        ("linux", "x86_64", ("", ""), "C library : the embedded server needs glibc 2.35"),
    ],
)
def test_other_platforms_are_refused(system: str, machine: str, libc: tuple[str, str], words: str) -> None:
    with pytest.raises(CannotStart, match=words):
        preconditions.check_platform(system, machine, libc)


def test_a_new_numpy_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda name: "2.1.0")
    with pytest.raises(CannotStart, match="numpy 2.1.0: .* pip install 'numpy<2'"):
        preconditions.check_numpy()


def test_a_missing_shared_memory_folder_is_told(tmp_path: Path) -> None:
    with pytest.raises(CannotStart, match="is missing: Python models get their tensors through it"):
        preconditions.check_shared_memory(tmp_path / "shm")


def test_a_small_shared_memory_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preconditions, "SHM_NEEDED_MB", 2**40)
    with pytest.raises(CannotStart, match="MB free; at least .* --shm-size=1g"):
        preconditions.check_shared_memory(tmp_path)


def test_another_python3_beside_the_interpreter_is_told(tmp_path: Path) -> None:
    (tmp_path / "python3").symlink_to("/bin/sh")
    with pytest.raises(CannotStart, match="would get the packages of another Python"):
        preconditions.check_python3(tmp_path / Path(sys.executable).name)


def test_a_repository_must_be_there_and_hold_what_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(CannotStart, match="no such folder"):
        preconditions.check_repository(tmp_path / "nowhere", [])
    with pytest.raises(CannotStart, match="holds no model folder"):
        preconditions.check_repository(tmp_path, [])
    (tmp_path / "here").mkdir()
    preconditions.check_repository(tmp_path, ["here"])
    with pytest.raises(CannotStart, match="there: not in .* which holds: here"):
        preconditions.check_repository(tmp_path, ["here", "there"])
