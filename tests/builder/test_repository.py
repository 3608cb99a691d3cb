"""Writing: all or nothing, only its own files, nothing twice."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from builder import Artifact, Model, Pipeline, RepositoryError, Step, make_plan
from builder.contents import LARGE_BYTES
from builder.manifest import MANIFEST, WEIGHTS
from builder.model import Tree
from builder.repository import compare_repository, write_repository
from builder.transaction import Change, apply_changes


@pytest.fixture
def code(tmp_path: Path) -> Path:
    folder = tmp_path / "code"
    (folder / "__pycache__").mkdir(parents=True)
    (folder / "__pycache__" / "model.pyc").write_text("bytecode")
    (folder / "model.py").write_text("class TritonPythonModel: ...\n")
    return folder


@pytest.fixture
def exports(tmp_path: Path) -> Path:
    folder = tmp_path / "exports" / "net"
    folder.mkdir(parents=True)
    (folder / "net.bin").write_bytes(b"weights")
    (folder / "words.txt").write_text("words")
    (folder / "export.json").write_text("{}")
    return folder.parent


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "repo"


def _model(code: Path, name: str = "m", **config):
    return Model(
        name=name,
        config={"backend": "python", "input": ["A FP32 [1]"], "output": ["B FP32 [1]"], **config},
        trees=(Tree(source=code, target="1"),),
        texts={"settings.json": "{}\n"},
        artifacts=(Artifact(source=Path("net/*"), target="", exclude=("export.json",)),),
    )


def _plan(model: Model, name: str = "p"):
    step = Step(model=model, input_map="A", output_map="B")
    return make_plan([Pipeline(name=name, inputs="A", outputs="B", steps=[step])])


def _files(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every path with its mtime and content."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in sorted(folder.rglob("*"))
    }


def test_a_repository_is_complete_in_itself(code, exports, out):
    write_repository(_plan(_model(code)), out, exports=exports)
    assert {path for path, (_, content) in _files(out).items() if content} == {
        MANIFEST,
        WEIGHTS,
        "m/1/model.py",
        "m/1/net.bin",
        "m/1/settings.json",
        "m/1/words.txt",
        "m/config.pbtxt",
        "p/1/.gitkeep",
        "p/config.pbtxt",
    }
    assert (out / "m/1/net.bin").samefile(exports / "net/net.bin")


def test_the_second_build_touches_nothing(code, exports, out):
    write_repository(_plan(_model(code)), out, exports=exports)
    before = _files(out)
    assert write_repository(_plan(_model(code)), out, exports=exports) == ()
    assert _files(out) == before


def test_a_change_touches_what_it_changes_and_nothing_else(code, exports, out):
    write_repository(_plan(_model(code)), out, exports=exports)
    before = _files(out)
    changed = write_repository(_plan(_model(code, parameters={"k": "v"})), out, exports=exports)
    assert [(one.kind, one.path) for one in changed] == [("different", "m/config.pbtxt")]
    after = _files(out)
    assert {path for path in after if after[path][1] != before[path][1]} == {"m/config.pbtxt", MANIFEST}
    assert {path for path in after if after[path][0] != before[path][0]} - {"m", "."} == {"m/config.pbtxt", MANIFEST}


@pytest.mark.parametrize("broken_at", range(7))
def test_a_failed_write_leaves_the_folder_as_it_was(broken_at, code, exports, out, tmp_path, monkeypatch):
    write_repository(_plan(_model(code)), out, exports=exports)
    before = _files(out)
    (code / "more.py").write_text("more = 1\n")
    (code / "model.py").write_text("class TritonPythonModel: changed = True\n")
    real, calls = os.rename, []

    def rename(source, target, **more):
        calls.append(target)
        if len(calls) > broken_at:
            raise OSError(28, "No space left on device")
        return real(source, target, **more)

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", rename)
        with pytest.raises(RepositoryError, match="No space left on device"):
            write_repository(_plan(_model(code, parameters={"k": "v"}), "other"), out, exports=exports, only=True)
    assert calls
    after = _files(out)
    assert after.keys() == before.keys()
    assert {path: content for path, (_, content) in after.items()} == {
        path: content for path, (_, content) in before.items()
    }
    files = [path for path in before if (out / path).is_file()]
    assert {path: after[path] for path in files} == {path: before[path] for path in files}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["code", "exports", "repo"]


def test_a_failed_first_write_leaves_no_folder(code, exports, out, tmp_path, monkeypatch):
    def rename(source, target, **more):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", rename)
        with pytest.raises(RepositoryError):
            write_repository(_plan(_model(code)), out, exports=exports)
    assert not out.exists()


def test_an_interrupt_in_the_middle_leaves_the_folder_as_it_was(tmp_path, monkeypatch):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a").write_text("old")
    real = os.rename

    def rename(source, target, **more):
        if str(target).endswith("folder/b"):
            raise KeyboardInterrupt
        return real(source, target, **more)

    monkeypatch.setattr(os, "rename", rename)
    changes = [Change(kind="text", path=path, text=b"new") for path in ("a", "b")]
    with pytest.raises(KeyboardInterrupt):
        apply_changes(folder, changes)
    assert {path.name: path.read_text() for path in folder.iterdir()} == {"a": "old"}


def test_weights_that_are_missing_name_the_command_that_makes_them(code, out, tmp_path):
    with pytest.raises(RepositoryError, match="Run `tritonkit weights` first, or build without them by --no-weights"):
        write_repository(_plan(_model(code)), out, exports=tmp_path / "none")
    assert not out.exists()


def test_without_weights_nothing_is_asked_of_them(code, out, tmp_path):
    write_repository(_plan(_model(code)), out, exports=tmp_path / "none", weights=False)
    assert not (out / "m/1/net.bin").exists()
    assert (out / "m/1/model.py").exists()


def test_a_build_without_weights_keeps_those_that_are_there(code, exports, out):
    write_repository(_plan(_model(code)), out, exports=exports)
    assert write_repository(_plan(_model(code)), out, exports=exports, weights=False) == ()
    assert (out / "m/1/net.bin").exists()
    assert json.loads((out / WEIGHTS).read_text()).keys() == {"m/1/net.bin", "m/1/words.txt"}


def test_new_weights_take_the_place_of_old_ones(code, exports, out):
    write_repository(_plan(_model(code)), out, exports=exports)
    (exports / "net/net.bin").unlink()
    (exports / "net/net.bin").write_bytes(b"better weights")
    (exports / "net/words.txt").unlink()
    changed = write_repository(_plan(_model(code)), out, exports=exports)
    assert [(one.kind, one.path) for one in changed] == [("different", "m/1/net.bin"), ("stale", "m/1/words.txt")]
    assert (out / "m/1/net.bin").read_bytes() == b"better weights"


def test_weights_on_another_file_system_are_copied_once(code, exports, out, monkeypatch):
    def link(*_, **__):
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", link)
    write_repository(_plan(_model(code)), out, exports=exports)
    assert not (out / "m/1/net.bin").samefile(exports / "net/net.bin")
    assert (out / "m/1/net.bin").read_bytes() == b"weights"
    before = _files(out)
    assert write_repository(_plan(_model(code)), out, exports=exports) == ()
    assert _files(out) == before


@pytest.mark.parametrize("path", ["m/config.pbtxt", "m/1/model.py", "m/1/net.bin", "m/1/settings.json"])
def test_a_file_of_somebody_else_is_never_overwritten(path, code, exports, out):
    (out / path).parent.mkdir(parents=True)
    (out / path).write_text("mine")
    with pytest.raises(RepositoryError, match=f"{path} is in the way: tritonkit did not"):
        write_repository(_plan(_model(code)), out, exports=exports, force=True)
    assert {name for name, (_, content) in _files(out).items() if content} == {path}


def test_an_edited_copy_is_kept_unless_forced(code, exports, out):
    write_repository(_plan(_model(code)), out, exports=exports)
    (out / "m/1/model.py").write_text("class TritonPythonModel: edited = True\n")
    with pytest.raises(RepositoryError, match="m/1/model.py is in the way: it was edited since"):
        write_repository(_plan(_model(code)), out, exports=exports)
    write_repository(_plan(_model(code)), out, exports=exports, force=True)
    assert (out / "m/1/model.py").read_text() == (code / "model.py").read_text()


def test_stale_files_of_a_pipeline_go_and_so_do_their_folders(code, exports, out):
    write_repository(_plan(_model(code)), out, exports=exports)
    (out / "m/1/__pycache__").mkdir()
    (out / "m/1/__pycache__/model.pyc").write_text("bytecode")
    changed = write_repository(_plan(_model(code, "other")), out, exports=exports)
    assert {one.path for one in changed if one.kind == "stale"} == {
        "m/1/model.py",
        "m/1/net.bin",
        "m/1/settings.json",
        "m/1/words.txt",
        "m/config.pbtxt",
    }
    assert sorted(path.name for path in out.iterdir() if path.is_dir()) == ["other", "p"]


def test_other_pipelines_stay_unless_told_otherwise(code, exports, out):
    write_repository(_plan(_model(code)), out, exports=exports)
    write_repository(_plan(_model(code, "other"), "q"), out, exports=exports)
    assert sorted(path.name for path in out.iterdir() if path.is_dir()) == ["m", "other", "p", "q"]
    write_repository(_plan(_model(code, "other"), "q"), out, exports=exports, only=True)
    assert sorted(path.name for path in out.iterdir() if path.is_dir()) == ["other", "q"]


def test_a_model_that_another_pipeline_uses_too_is_not_changed_behind_its_back(code, exports, out):
    write_repository(_plan(_model(code)), out, exports=exports)
    with pytest.raises(RepositoryError, match="m/config.pbtxt: m would change, and p in this folder uses it too"):
        write_repository(_plan(_model(code, parameters={"k": "v"}), "q"), out, exports=exports)


def test_code_that_is_served_in_place_is_neither_copied_nor_recorded(exports, out):
    folder = out / "m" / "1"
    folder.mkdir(parents=True)
    (folder / "model.py").write_text("class TritonPythonModel: ...\n")
    for _ in range(2):
        write_repository(_plan(_model(folder)), out, exports=exports)
    assert "m/1/model.py" not in json.loads((out / MANIFEST).read_text())["files"]
    elsewhere = out.parent / "elsewhere"
    write_repository(_plan(_model(folder)), elsewhere, exports=exports, weights=False)
    assert sorted(path.name for path in (elsewhere / "m/1").iterdir()) == ["model.py", "settings.json"]


def test_large_files_of_a_folder_are_linked(code, exports, out):
    (code / "big.bin").write_bytes(b"0" * LARGE_BYTES)
    write_repository(_plan(_model(code)), out, exports=exports)
    assert (out / "m/1/big.bin").samefile(code / "big.bin")
    assert not (out / "m/1/model.py").samefile(code / "model.py")


def test_a_path_out_of_the_repository_is_refused(code, exports, out):
    model = Model(name="m", config={"backend": "python"}, texts={"../../x": "x"})
    with pytest.raises(RepositoryError, match="leads out of the repository"):
        write_repository(_plan(model), out, exports=exports)


def test_a_linked_folder_that_leads_out_is_refused(code, exports, out, tmp_path):
    (tmp_path / "far").mkdir()
    out.mkdir()
    (out / "m").symlink_to(tmp_path / "far")
    with pytest.raises(RepositoryError, match="leads out of the repository"):
        write_repository(_plan(_model(code)), out, exports=exports)
    assert list((tmp_path / "far").iterdir()) == []


def test_a_record_that_cannot_be_read_stops_everything(code, exports, out):
    out.mkdir()
    (out / MANIFEST).write_text("[")
    with pytest.raises(RepositoryError, match=f"{MANIFEST} or {WEIGHTS} cannot be read"):
        write_repository(_plan(_model(code)), out, exports=exports)


def test_compare_says_what_is_missing_different_and_stale(code, exports, out):
    write_repository(_plan(_model(code)), out, exports=exports)
    (out / "p/config.pbtxt").unlink()
    (out / "m/config.pbtxt").write_text((out / "m/config.pbtxt").read_text() + "# more\n")
    plan = _plan(_model(code))
    state = compare_repository(plan, out, exports=exports, weights=False)
    assert [(one.kind, one.path) for one in state.differences] == [
        ("different", "m/config.pbtxt"),
        ("missing", "p/config.pbtxt"),
    ]
