"""The whole check on folders that nobody should have: it ends, it says something, it reads nothing outside."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builder.catalog import target
from builder.check import check_catalog
from builder.errors import RepositoryError
from builder.findings import Finding
from builder.folder.onnxfile import read_onnx
from builder.folder.pythonfile import read_python
from builder.folder.reading import read_repository
from builder.folder.versions import loaded_versions, version_number


def check(folder: Path) -> tuple[Finding, ...]:
    """Every finding of a folder."""
    return check_catalog(read_repository(folder, target("embedded")))


NAMES = st.one_of(
    st.sampled_from(
        ["1", "2", "v1", "01", "1a", "-1", "config.pbtxt", "configs", "model.py", "model.onnx", "warmup", "x"]
    ),
    st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=8).filter(
        lambda name: name not in (".", "..")
    ),
)
CONTENT = st.one_of(
    st.binary(max_size=80),
    st.sampled_from(
        [
            b'backend: "python"',
            b'platform: "ensemble" ensemble_scheduling { step { model_name: "../x" output_map { key: "A" } } }',
            b'output { name: "Y" label_filename: "../../../../etc/passwd" }',
            b'default_model_filename: "/etc/passwd"',
            b'parameters { key: "EXECUTION_ENV_PATH" value { string_value: "$$TRITON_MODEL_DIRECTORY/../.." } }',
            b'model_warmup { batch_size: 1 inputs { key: "A" value { input_data_file: "../../../etc/passwd" } } }',
        ]
    ),
)


@given(st.dictionaries(st.tuples(NAMES, NAMES, NAMES), CONTENT, max_size=6))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_folder_gives_findings(
    tmp_path_factory: pytest.TempPathFactory, files: dict[tuple[str, str, str], bytes]
) -> None:
    folder = tmp_path_factory.mktemp("any")
    for parts, content in files.items():
        for length in (3, 2):
            path = folder.joinpath(*parts[:length])
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            except OSError:  # a file where a folder should be
                continue
    for one in check(folder):
        assert str(one) and one.where


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every path that is opened or listed from here on, links followed."""
    paths: list[str] = []
    sys.addaudithook(
        lambda event, given: paths.append(os.path.realpath(str(given[0]))) if event in ("open", "os.scandir") else None
    )
    return paths


def test_nothing_outside_the_repository_is_read(tmp_path: Path, opened: list[str]) -> None:
    secret = tmp_path / "outside"
    secret.mkdir()
    (secret / "secret.txt").write_text('backend: "python"')
    model = tmp_path / "repository" / "m"
    (model / "1").mkdir(parents=True)
    (model / "config.pbtxt").write_text(
        'backend: "python"\n'
        'output { name: "Y" data_type: TYPE_FP32 dims: 1 label_filename: "../../outside/secret.txt" }\n'
        f'default_model_filename: "{secret}/secret.txt"\n'
        'parameters { key: "EXECUTION_ENV_PATH" value { string_value: "$$TRITON_MODEL_DIRECTORY/../../outside" } }\n'
    )
    (model / "2").symlink_to(secret)
    (model / "1" / "model.onnx").symlink_to(secret / "secret.txt")
    (model.parent / "other").symlink_to(secret)
    (model.parent / "third").mkdir()
    (model.parent / "third" / "config.pbtxt").symlink_to(secret / "secret.txt")
    opened.clear()
    check(model.parent)
    root = os.path.realpath(model.parent)
    inside = [path for path in opened if str(secret) in path]
    assert inside == []
    assert any(path.startswith(root) for path in opened)


def test_a_pipe_and_a_device_are_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "m" / "1").mkdir(parents=True)
    os.mkfifo(tmp_path / "m" / "config.pbtxt")
    os.mkfifo(tmp_path / "m" / "1" / "model.py")
    assert any(one.code == "TK817" for one in check(tmp_path))


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(RepositoryError, match="No such file"):
        check(tmp_path / "nowhere")


def test_names_that_no_text_can_hold(tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path) + b"/m\xff"
    os.makedirs(folder + b"/1")
    with open(folder + b"/config.pbtxt", "wb") as file:
        file.write(b'backend: "python"')
    assert check(tmp_path)


@given(st.binary(max_size=200))
@settings(max_examples=200, deadline=None)
def test_any_bytes_as_code(data: bytes) -> None:
    read_python(data)


@given(st.binary(max_size=200))
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_as_onnx(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x.onnx").write_bytes(data)
    read_onnx(tmp_path / "x.onnx")


@pytest.mark.parametrize(
    "source", [b"(" * 10_000, b"x = " + b"-" * 5_000 + b"1", b"[" * 150 + b"]" * 150, b"\0", b"\xff"]
)
def test_code_that_is_too_much_for_the_parser(source: bytes) -> None:
    read_python(source)


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("1", 1),
        ("10", 10),
        ("0", 0),
        ("01", None),
        ("v1", None),
        ("1a", 1),
        ("-1", -1),
        ("", None),
        ("007", None),
        ("+3", 3),
    ],
)
def test_numbers_of_version_folders(name: str, number: int | None) -> None:
    """As a real 2.51 takes them."""
    assert version_number(name) == number


@pytest.mark.parametrize(
    ("policy", "loaded"),
    [
        (None, (10,)),
        ({}, (1, 2, 10)),
        ({"all": {}}, (1, 2, 10)),
        ({"latest": {}}, ()),
        ({"latest": {"num_versions": 2}}, (2, 10)),
        ({"specific": {"versions": [2, 3]}}, (2,)),
        ({"specific": {}}, ()),
    ],
)
def test_versions_that_a_policy_loads(policy: dict | None, loaded: tuple[int, ...]) -> None:
    """As a real 2.51 loads them."""
    assert loaded_versions(policy, (10, 1, 2)) == loaded
