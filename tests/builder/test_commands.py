"""The commands: results on standard output, problems on standard error, exit status 0, 1 or 2."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from builder.__main__ import app

MINE = '''
from builder import Pipeline, Step, onnx, python

scale = python("scale", code="{code}", input=["RAW UINT8 [-1]"], output=["X FP32 [4]"])
other = python("other", code="{code}", input=["X FP32 [4]"], output=["Y FP32 [{size}]"])

mine = Pipeline(
    name="classify",
    inputs="RAW",
    outputs="Y",
    steps=[
        Step(model=scale, input_map="RAW", output_map="X=pixels"),
        Step(model=other, input_map="X=pixels", output_map="Y"),
    ],
)


def made(size="4"):
    """A pipeline of another name."""
    step = Step(model=scale, input_map="RAW", output_map="X")
    return Pipeline(name=f"made{{size}}", inputs="RAW", outputs="X", steps=[step])
'''


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITONKIT_CACHE", str(tmp_path / "cache"))

    def invoke(*arguments: object):
        return CliRunner().invoke(app, [str(one) for one in arguments])

    return invoke


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "model.py").write_text("class TritonPythonModel: ...\n")
    file = tmp_path / "mine.py"
    file.write_text(MINE.format(code=tmp_path / "code", size=3))
    return file


def test_build_writes_says_what_and_the_second_time_has_nothing_to_do(run, mine, tmp_path):
    first = run("build", mine, "--out", tmp_path / "repo")
    assert first.exit_code == 0, first.output
    assert "new         classify/config.pbtxt" in first.stdout
    assert (tmp_path / "repo/scale/1/model.py").exists()
    second = run("build", mine, "--out", tmp_path / "repo")
    assert second.stdout.endswith("repo: classify: nothing to do\n")


def test_build_takes_a_function_of_a_file_and_its_arguments(run, mine, tmp_path):
    done = run("build", f"{mine}:made", "--set", "size=5", "--out", tmp_path / "repo")
    assert done.exit_code == 0, done.output
    assert (tmp_path / "repo/made5/config.pbtxt").exists()


def test_diff_is_quiet_about_a_fresh_repository_and_ends_in_one_about_a_stale_one(run, mine, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)  # a compiled copy is of no account, and none is left
    os.utime(mine, (1, 1))
    run("build", mine, "--out", tmp_path / "repo")
    assert run("diff", mine, "--out", tmp_path / "repo").exit_code == 0
    mine.write_text(mine.read_text().replace("Y FP32 [3]", "Y FP32 [5]"))
    os.utime(mine, (1, 1))
    assert not (tmp_path / "__pycache__").exists()
    stale = run("diff", mine, "--out", tmp_path / "repo")
    assert stale.exit_code == 1
    assert "different  other/config.pbtxt" in stale.stdout
    assert "  -  dims: [3]\n  +  dims: [5]" in stale.stdout
    assert "2 files are not as they should be; `tritonkit build` writes them" in stale.stderr


def test_problems_go_to_standard_error_all_at_once_and_nothing_is_written(run, mine, tmp_path):
    mine.write_text(mine.read_text().replace('"X FP32 [4]"], output=["Y', '"X INT32 [5]"], output=["Y'))
    done = run("build", mine, "--out", tmp_path / "repo")
    assert done.exit_code == 1
    assert "error TK401 classify, step 1 (other), input X" in done.stderr
    assert "error TK402 classify, step 1 (other), input X" in done.stderr
    assert "2 errors" in done.stderr
    assert done.stdout == ""
    assert not (tmp_path / "repo").exists()


def test_shipped_pipelines_without_weights_name_the_command_that_makes_them(run, tmp_path):
    done = run("build", "detect", "--out", tmp_path / "repo")
    assert done.exit_code == 1
    assert "Run `tritonkit weights` first" in done.stderr
    assert run("build", "detect", "--out", tmp_path / "repo", "--no-weights").exit_code == 0


def test_check_says_how_much_was_checked(run):
    done = run("check")
    assert (done.exit_code, done.stdout) == (
        0,
        "assistant, detect, transcribe: 8 models, 6 ensembles, no findings "
        "(for the embedded server, profile cpu, gpu)\n",
    )


def test_an_unknown_pipeline_names_the_nearest(run):
    done = run("check", "asistant")
    assert done.exit_code == 1
    assert "asistant: no shipped pipeline has this name; did you mean assistant?" in done.stderr


def test_a_file_that_is_not_there_and_one_without_a_pipeline(run, tmp_path):
    assert "there is no such file" in run("check", tmp_path / "no.py").stderr
    (tmp_path / "empty.py").write_text("")
    assert "there is no Pipeline in the file" in run("check", tmp_path / "empty.py").stderr


def test_a_function_must_return_a_pipeline(run, mine):
    mine.write_text("def made():\n    return 3\n")
    assert "made: it returned int; a function that returns a Pipeline is needed" in run("check", f"{mine}:made").stderr


def test_paths_in_a_file_are_relative_to_the_file(run, mine, tmp_path):
    mine.write_text(mine.read_text().replace(f'"{tmp_path / "code"}"', '"code"'))
    done = run("build", mine, "--out", tmp_path / "repo")
    assert done.exit_code == 0, done.output
    assert (tmp_path / "repo/scale/1/model.py").exists()


def test_a_mistake_in_a_file_is_named_with_its_line(run, mine):
    mine.write_text("import builder\n\nbuilder.nothing\n")
    assert "mine.py, line 3: AttributeError: module 'builder' has no attribute 'nothing'" in run("check", mine).stderr
    mine.write_text("from builder import python\npython('m', code='.', input=['A'], output=[])\n")
    assert "m: there is no model.py in ." in run("check", mine).stderr


def test_an_option_that_nobody_takes_is_refused(run):
    done = run("check", "detect", "--whisper", "base")
    assert done.exit_code == 1
    assert "option whisper: no pipeline named takes whisper" in done.stderr


@pytest.mark.parametrize("arguments", [["--target", "1.1"], ["--set", "x"], ["--no-such-option"]])
def test_wrong_usage_ends_in_two(arguments, run):
    assert run("check", *arguments).exit_code == 2


def test_draw_prints_a_picture_with_every_model(run, tmp_path):
    done = run("draw", "assistant")
    assert done.stdout.startswith("<svg ")
    for name in ("whisper_encoder", "yolo_postprocess", "llm", "python, decoupled", "uint8 [3,416,416]"):
        assert name in done.stdout
    assert run("draw", "assistant", "--out", tmp_path / "a.svg").stdout == ""
    assert (tmp_path / "a.svg").read_text() == done.stdout


def test_the_committed_configs_are_what_build_writes(run):
    done = run("diff")
    assert (done.exit_code, done.stdout) == (0, "")


def test_the_committed_picture_is_what_draw_draws(run):
    committed = Path(__file__).parents[2] / "docs" / "assistant.svg"
    assert run("draw", "assistant").stdout == committed.read_text(encoding="utf-8")
