"""Releases on the real server with requests running; what became of each request is counted."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from benchmarks.callers import Callers
from clients import Client, ClientError, connect
from release import folders, lock
from release.compare import differing, read_recording
from release.errors import FolderError

KEY = "the key of this test's management"
MODEL = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for request in requests:
            given = pb_utils.get_input_tensor_by_name(request, "X").as_numpy()
            answers.append(pb_utils.InferenceResponse([
                pb_utils.Tensor("Y", given * {factor}), pb_utils.Tensor("BY", {by}.astype("int32"))]))
        return answers
"""
CONFIG = """name: "scale"
backend: "python"
input [{name: "X" data_type: TYPE_FP32 dims: [-1]}]
output [{name: "Y" data_type: TYPE_FP32 dims: [-1]}, {name: "BY" data_type: TYPE_INT32 dims: [-1]}]
instance_group [{kind: KIND_CPU}]
"""
SAME = MODEL.format(factor="2", by="given[:0]")
BY_THREE = MODEL.format(factor="3", by="given[:0]")


class Place:
    """A served repository with the model `scale`, and the commands on it."""

    def __init__(self, folder: Path) -> None:
        self.repository, self.folder = folder / "repository", folder
        self.model = self.repository / "scale"
        (self.model / "1").mkdir(parents=True)
        (self.model / "config.pbtxt").write_text(CONFIG)
        (self.model / "1" / "model.py").write_text(SAME)
        self.recording = folder / "one.npz"
        np.savez(self.recording, X=np.arange(4, dtype=np.float32))
        ports = ("--http-port", "0", "--grpc-port", "0", "--metrics-port", "0", "--log", str(folder / "server.log"))
        self.environment = {**os.environ, "TRITONKIT_MANAGEMENT_KEY": KEY}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tritonkit", "serve", str(self.repository), *ports],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=self.environment,
        )
        assert self.process.stdout
        found = next(found for line in self.process.stdout if (found := re.search(r"gRPC\s+(\S+)", line)))
        self.url = f"grpc://{found[1]}"

    def version(self, source: str) -> str:
        """A folder with a new version."""
        place = self.folder / f"new{time.monotonic_ns()}"
        place.mkdir()
        (place / "model.py").write_text(source)
        return str(place)

    def release(self, command: str, *arguments: str, key: str = KEY) -> subprocess.CompletedProcess[str]:
        options = ["--repository", str(self.repository)]
        options += [] if command == "status" else ["--server", self.url]
        return subprocess.run(
            [sys.executable, "-m", "release", "release", command, "scale", *arguments, *options],
            capture_output=True,
            text=True,
            timeout=60,
            env={**self.environment, "TRITONKIT_MANAGEMENT_KEY": key},
        )

    def factor(self) -> float:
        with connect(self.url) as client:
            return float(client.infer("scale", {"X": np.ones(1, dtype=np.float32)})["Y"][0])

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(30)
        assert self.process.stdout
        self.process.stdout.close()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    one = Place(tmp_path_factory.mktemp("release"))
    yield one
    one.stop()


def asking(url: str, allowed: set[float]) -> Callers:
    """Callers that ask without pause; each answer must be that of one of the versions."""

    @contextmanager
    def connected(number: int) -> Iterator[Callable[[], str]]:
        with connect(url, timeout_s=20) as client:
            yield lambda: fate(client)

    def fate(client: Client) -> str:
        try:
            answer = client.infer("scale", {"X": np.ones(1, dtype=np.float32)})["Y"]
        except ClientError as error:
            return f"failed: {error}"
        return f"answered by {answer[0]:g}" if answer[0] in allowed else "wrong"

    return Callers(connected)


def wait_until(is_so: Callable[[], object], limit_s: float = 20) -> None:
    end = time.monotonic() + limit_s
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.server
def test_a_version_goes_live_and_back_without_one_failed_request(place: Place) -> None:
    tripled = place.version(BY_THREE)
    with asking(place.url, {2, 3}) as callers:
        staged = place.release("stage", tripled)
        assert staged.returncode == 0, staged.stderr
        assert place.factor() == 2, "beside the old one, the new one must not answer"
        switched = place.release("switch")
        assert switched.returncode == 0 and "version 2 answers" in switched.stdout, switched.stderr
        callers.wait_for("answered by 3", 20)
        assert place.factor() == 3
        back = place.release("rollback")
        assert back.returncode == 0 and "version 1 answers; version 2 lies in" in back.stdout, back.stderr
        wait_until(lambda: place.factor() == 2)
    counts = callers.counts
    assert set(counts) == {"sent", "answered by 2", "answered by 3"}, counts
    assert counts["sent"] == counts["answered by 2"] + counts["answered by 3"], counts
    assert folders.versions(place.model) == [1] and not folders.candidate_folder(place.model).exists()
    assert (place.folder / "repository.withdrawn" / "scale" / "2" / "model.py").read_text() == BY_THREE


@pytest.mark.server
def test_a_version_that_answers_the_same_goes_live_in_one_command(place: Place) -> None:
    before = folders.versions(place.model)
    done = place.release("run", place.version(SAME + "\n# faster\n"), "--inputs", str(place.recording))
    assert done.returncode == 0, done.stderr
    assert "1 recorded inputs are answered the same" in done.stdout
    assert folders.versions(place.model) == [*before, before[-1] + 1]
    told = place.release("status")
    assert told.returncode == 0 and f"version {before[-1] + 1}, as recorded, answers" in told.stdout
    assert place.release("rollback").returncode == 0


@pytest.mark.server
@pytest.mark.parametrize(
    ("source", "words"),
    [
        (BY_THREE, "Y differs by up to 3"),
        (MODEL.format(factor="2", by="given[:1]"), "BY is int32 [1] instead of int32 [0]"),
        ("raise ValueError('no such thing')", "no such thing"),
        ("", "TritonPythonModel"),
    ],
)
def test_a_version_that_is_not_good_leaves_no_trace(place: Place, source: str, words: str) -> None:
    before = tree(place.repository)
    done = place.release("run", place.version(source), "--inputs", str(place.recording))
    assert done.returncode == 1 and words in done.stderr and "Traceback" not in done.stderr, done.stderr
    assert tree(place.repository) == before
    assert place.factor() == 2


@pytest.mark.server
def test_without_the_key_nothing_is_changed(place: Place) -> None:
    before = tree(place.repository)
    done = place.release("stage", place.version(SAME), key="a guess")
    assert done.returncode == 1 and "--key-file" in done.stderr, done.stderr
    assert not folders.candidate_folder(place.model).exists()
    assert tree(place.repository) == before


@pytest.mark.server
@pytest.mark.parametrize("arguments", [("switch",), ("rollback",), ("compare", "--inputs", "one.npz")])
def test_a_step_out_of_order_is_refused(place: Place, arguments: tuple[str, ...]) -> None:
    done = place.release(*arguments)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "candidate" in done.stderr or "only version 1" in done.stderr


def tree(folder: Path) -> dict[str, bytes]:
    return {
        str(one.relative_to(folder)): one.read_bytes()
        for one in folder.rglob("*")
        if one.is_file() and "__pycache__" not in one.parts
    }


def local_model(folder: Path, config: str = CONFIG) -> Path:
    model = folder / "repository" / "scale"
    (model / "1").mkdir(parents=True)
    (model / "config.pbtxt").write_text(config)
    (model / "1" / "model.py").write_text(SAME)
    return model


@pytest.mark.parametrize("name", ["../scale", "", ".", "a/b", "scale\x00", "no_such_model"])
def test_a_name_that_leads_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    local_model(tmp_path)
    with pytest.raises(FolderError):
        folders.model_folder(tmp_path / "repository", name)


def test_a_policy_of_its_own_is_refused(tmp_path: Path) -> None:
    local_model(tmp_path, CONFIG + "version_policy { all {} }\n")
    with pytest.raises(FolderError, match="version_policy"):
        folders.model_folder(tmp_path / "repository", "scale")


def test_the_candidate_carries_its_own_name_and_nothing_else_changes(tmp_path: Path) -> None:
    model = local_model(tmp_path)
    new = tmp_path / "new"
    new.mkdir()
    (new / "model.py").write_text(BY_THREE)
    candidate = folders.place_candidate(model, new)
    assert (candidate / "config.pbtxt").read_text() == CONFIG.replace('"scale"', '"scale_candidate"')
    assert folders.promote(model) == 2 and not candidate.exists()
    assert (model / "2" / "model.py").read_text() == BY_THREE
    folders.demote(model, 2)
    assert folders.versions(model) == [1] and (candidate / "1" / "model.py").read_text() == BY_THREE
    folders.drop_candidate(model)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["new", "repository"]
    assert sorted(one.name for one in model.parent.iterdir()) == ["scale"]


def test_a_version_that_is_not_there_leaves_nothing(tmp_path: Path) -> None:
    model = local_model(tmp_path)
    before = tree(tmp_path)
    with pytest.raises(FolderError):
        folders.place_candidate(model, tmp_path / "nothing")
    assert tree(tmp_path) == before


def test_changed_files_of_a_version_are_named(tmp_path: Path) -> None:
    model = local_model(tmp_path)
    lock.record(model.parent, "scale", 1, lock.hashes_of(model / "1"))
    assert lock.changed_files(model / "1", lock.read(model.parent)["scale"]["1"]) == []
    (model / "1" / "model.py").write_text("x")
    (model / "1" / "new").write_text("y")
    found = lock.changed_files(model / "1", lock.read(model.parent)["scale"]["1"])
    assert found == ["model.py was changed", "new is new"]
    assert json.loads((model.parent / lock.LOCK).read_text())["scale"]["1"].keys() == {"model.py"}


def test_a_recording_is_read_without_running_what_is_in_it(tmp_path: Path) -> None:
    file = tmp_path / "bad.npz"
    np.savez(file, X=np.array([print], dtype=object))
    with pytest.raises(FolderError, match="plain arrays"):
        read_recording(file)
    np.savez(file, TEXT=np.array(["a", "bé"]))
    assert read_recording(file)["TEXT"].tolist() == ["a", "bé"]


def test_every_kind_of_difference_is_told() -> None:
    one = {"Y": np.ones(2, dtype=np.float32), "T": np.array([b"a"], dtype=object)}
    assert differing([one], [one], 0) == []
    assert differing([one], [one, one], 0) == ["2 responses instead of 1"]
    assert differing([one], [{**one, "Y": one["Y"] + 1e-4}], 1e-3) == []
    assert differing([one], [{**one, "Y": one["Y"] + 0.5}], 1e-3) == ["Y differs by up to 0.5"]
    assert differing([one], [{"Y": one["Y"]}], 0) == ["T is missing"]
    assert differing([one], [{**one, "N": one["Y"]}], 0) == ["N is new"]
    assert differing([one], [{**one, "T": np.array([b"b"], dtype=object)}], 0) == ["T is [b'b'] instead of [b'a']"]
