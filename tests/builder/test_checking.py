"""The command `check` on folders: report, formats, settings, corrections, exit status."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from builder.__main__ import app
from builder.reports.page import codes_page
from builder.rules import ALL_RULES

ROOT = Path(__file__).parents[2]
CODE = "class TritonPythonModel:\n    def execute(self, requests):\n        return [one for one in requests]\n"
MODEL = """backend: "python"
input [ { name: "A" data_type: TYPE_FP32 dims: [ 3 ] } ]
output [ { name: "B" data_type: TYPE_FP32 dims: [ 3 ] } ]
"""
ENSEMBLE = """platform: "ensemble"
input [ { name: "X" data_type: TYPE_FP32 dims: [ 3 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ 3 ] } ]
instance_group [ { kind: KIND_CPU } ]
ensemble_scheduling {
  step {
    model_name: "m"
    input_map { key: "A" value: "X" }
    output_map { key: "B" value: "Y" }
  }
}
"""
BROKEN = {"m/config.pbtxt": MODEL, "m/1/model.py": CODE, "e/config.pbtxt": ENSEMBLE}


@pytest.fixture
def folder(tmp_path: Path) -> Callable[[Mapping[str, str]], Path]:
    """Writes files into a repository folder."""

    def write(files: Mapping[str, str]) -> Path:
        for name, content in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(content, encoding="utf-8")
        return tmp_path

    return write


def run(*arguments: object) -> Result:
    """The command with these arguments."""
    return CliRunner().invoke(app, [str(one) for one in arguments], env={"COLUMNS": "200"})


def test_a_good_repository(folder):
    done = run("check", folder({"m/config.pbtxt": MODEL, "m/1/model.py": CODE}))
    assert done.exit_code == 0
    assert done.stdout.endswith(": 1 model, 0 ensembles, no findings (for the embedded server, profile cpu)\n")
    assert done.stderr == ""


def test_everything_that_is_wrong_is_told_by_model_and_step(folder):
    done = run("check", folder(BROKEN))
    assert done.exit_code == 1 and done.stdout == ""
    lines = done.stderr.splitlines()
    assert lines[0] == "e"
    assert [line.strip() for line in lines if line.startswith("  error")] == [
        "error TK313  step 0 (m)  e/config.pbtxt:6",
        "error TK601  instance_group  e/config.pbtxt:4",
        "error TK801  version_policy  e/config.pbtxt:1",
    ]
    assert "    fix:      Write model_version: -1" in lines
    assert lines[-1].endswith(": 1 model, 1 ensemble, 3 errors (for the embedded server, profile cpu)")


def test_json_is_one_object_with_the_promised_keys(folder):
    done = run("check", folder(BROKEN), "--json", "--target", "24.10-py3", "--profile", "gpu")
    assert done.exit_code == 1 and done.stderr == ""
    report = json.loads(done.stdout)
    assert list(report) == ["target", "profile", "findings"]
    assert (report["target"], report["profile"]) == ("24.10-py3", "gpu")
    first = report["findings"][0]
    assert list(first) == [
        "code", "severity", "model", "file", "line", "step", "tensor", "found", "expected", "fix", "why"
    ]  # fmt: skip
    assert first["code"] == "TK313" and first["severity"] == "error" and first["step"] == 0
    assert (first["file"], first["line"], first["tensor"]) == ("e/config.pbtxt", 6, None)


def test_json_of_pipelines_has_no_files():
    done = run("check", "detect", "--json")
    assert done.exit_code == 0
    assert json.loads(done.stdout) == {"target": "embedded", "profile": "cpu, gpu", "findings": []}


def test_sarif_names_rules_files_and_lines(folder, monkeypatch):
    repository = folder(BROKEN)
    monkeypatch.chdir(repository.parent)
    done = run("check", repository.name, "--sarif")
    assert done.exit_code == 1
    report = json.loads(done.stdout)
    assert report["version"] == "2.1.0"
    (one,) = report["runs"]
    codes = [rule["id"] for rule in one["tool"]["driver"]["rules"]]
    assert codes == sorted(rule.code for rule in ALL_RULES)
    result = one["results"][0]
    assert codes[result["ruleIndex"]] == result["ruleId"] == "TK313"
    assert result["level"] == "error" and result["message"]["text"].startswith("e, step 0 (m): ")
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == f"{repository.name}/e/config.pbtxt"
    assert place["region"] == {"startLine": 6}
    assert len({tuple(one["partialFingerprints"].values()) for one in one["results"]}) == 3


def test_codes_are_switched_off_by_the_repositorys_settings(folder):
    settings = '[check]\nignore = ["TK801"]\ntarget = "25.03-py3"\n[check.models.e]\nignore = ["TK601"]\n'
    done = run("check", folder({**BROKEN, "tritonkit.toml": settings}))
    assert "TK313" in done.stderr and "TK801" not in done.stderr and "TK601" not in done.stderr
    assert "1 error; 2 switched off by tritonkit.toml (for the image 25.03-py3, profile cpu)" in done.stderr


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ('[check]\nignore = ["TK999"]', "tritonkit.toml, [check]: no rule has the code TK999"),
        ('[check]\nignored = ["TK801"]', "tritonkit.toml, [check]: ignored is no setting; did you mean ignore?"),
        ('[checks]\nignore = ["TK801"]', "tritonkit.toml: checks is no setting; did you mean check?"),
        ("[check", "tritonkit.toml: Expected ']'"),
        ('[check]\ntarget = "99.99"', "tritonkit.toml, [check]: target '99.99' is no server that is known"),
        ('[check]\nignore = "TK801"', "tritonkit.toml, [check]: ignore is 'TK801'; a list of codes is needed"),
    ],
)
def test_settings_that_nobody_understands_are_refused(settings, found, folder):
    done = run("check", folder({**BROKEN, "tritonkit.toml": settings}))
    assert done.exit_code == 1 and done.stderr.startswith(found)


def test_fix_corrects_what_is_safe_and_shows_the_change(folder):
    repository = folder(BROKEN)
    done = run("check", repository, "--fix")
    assert done.exit_code == 0
    assert "+  step { model_version: -1\n" in done.stdout
    assert "-instance_group [ { kind: KIND_CPU } ]\n" in done.stdout
    assert (repository / "e/1/README").is_file()
    after = (repository / "e/config.pbtxt").read_text(encoding="utf-8")
    assert after == ENSEMBLE.replace("instance_group [ { kind: KIND_CPU } ]\n", "").replace(
        "step {", "step { model_version: -1"
    )
    again = run("check", repository, "--fix")
    assert again.exit_code == 0 and again.stdout.count("\n") == 1


@pytest.mark.parametrize(
    ("line", "corrected"),
    [
        ('name: "other"', 'name: "m"'),
        ('platform: "onnxruntime_onnx"\n', ""),
        (
            'parameters { key: "FORCE_CPU_ONLY_INPUT_TENSORS" value { string_value: "false" } }',
            'string_value: "no" } }',
        ),
        ("instance_group [ { count: -2 kind: KIND_CPU } ]", "instance_group [ { count: 1 kind: KIND_CPU } ]"),
        (
            'model_warmup { name: "w" inputs { key: "A" value { data_type: TYPE_FP32 dims: 3 zero_data: true } } }',
            'model_warmup { batch_size: 1 name: "w" inputs',
        ),
        ("Max_batch_size: 0", "max_batch_size: 0"),
    ],
)
def test_every_safe_correction(line, corrected, folder):
    repository = folder({"m/config.pbtxt": MODEL + line, "m/1/model.py": CODE})
    done = run("check", repository, "--fix")
    assert done.exit_code == 0
    assert corrected in (repository / "m/config.pbtxt").read_text(encoding="utf-8")
    assert (repository / "m/config.pbtxt").read_text(encoding="utf-8").startswith(MODEL)


def test_fix_leaves_what_needs_a_decision(folder):
    files = {"m/config.pbtxt": MODEL + "max_batch_size: -1", "m/1/model.py": CODE}
    repository = folder(files)
    done = run("check", repository, "--fix")
    assert done.exit_code == 1 and done.stdout == ""
    assert (repository / "m/config.pbtxt").read_text(encoding="utf-8") == files["m/config.pbtxt"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", ".", "--target", "99.99"),
        ("check", ".", "--profile", "tpu"),
        ("check", ".", "--json", "--sarif"),
        ("check", ".", "detect"),
        ("check", "--fix"),
        ("explain",),
        ("explain", "TK000"),
        ("explain", "TK313", "--all"),
    ],
)
def test_wrong_usage_has_status_two(arguments):
    assert run(*arguments).exit_code == 2


def test_explain_says_what_a_server_does():
    done = run("explain", "tk313")
    assert done.exit_code == 0
    assert "TK313: step without a version that exists" in done.stdout
    assert "a server:  does not load the model" in done.stdout
    assert 'ignore = ["TK313"]' in done.stdout


def test_the_page_of_all_codes_is_as_the_rules_say():
    """`tritonkit explain --all > docs/checks.md` writes it anew."""
    page = codes_page(ALL_RULES)
    assert (ROOT / "docs/checks.md").read_text(encoding="utf-8") == page
    assert all(f"### {rule.code} " in page for rule in ALL_RULES)
