"""The smallest repository folders with something missing or in the way, and what is said about each."""

from __future__ import annotations

import os

import pytest

CONFIG = """backend: "python"
input [ { name: "A" data_type: TYPE_FP32 dims: [ 3 ] } ]
output [ { name: "B" data_type: TYPE_FP32 dims: [ 3 ] } ]
"""
CODE = "class TritonPythonModel:\n    def execute(self, requests):\n        return [answer(one) for one in requests]\n"
ENSEMBLE = (
    CONFIG.replace('backend: "python"', 'platform: "ensemble"')
    + 'ensemble_scheduling { step { model_name: "m" model_version: -1 '
    + 'input_map { key: "A" value: "A" } output_map { key: "B" value: "B" } } }'
)
MODEL = {"m/config.pbtxt": CONFIG, "m/1/model.py": CODE}


def test_a_good_model_has_no_findings(told_of_folder):
    assert told_of_folder(MODEL) == []


def test_a_version_beyond_64_bits(told_of_folder):
    (line,) = told_of_folder({**MODEL, "m/99999999999999999999/model.py": CODE})
    assert line.startswith("TK811 m/99999999999999999999:None m: the version folder 99999999999999999999 is no 64-bit ")


def test_a_folder_that_is_no_version(told_of_folder):
    """ENS-12."""
    lines = told_of_folder({"m/config.pbtxt": CONFIG, "m/v1/model.py": CODE})
    assert lines[0].startswith("TK801 m/config.pbtxt:1 m, version_policy: there is no version folder (v1 is none), ")
    assert lines[1].startswith("TK812 m/v1:None m: v1 is not taken for a version, ")
    assert lines[1].endswith("Rename it, for example to 1.")


def test_a_folder_that_is_taken_for_another_version(told_of_folder):
    (line,) = told_of_folder({"m/config.pbtxt": CONFIG, "m/1a/model.py": CODE})
    assert line.startswith("TK813 m/1a:None m: the server takes 1a for version 1 and looks into m/1, ")


def test_an_ensemble_without_version_folder(told_of_folder):
    """ENS-12."""
    (line,) = told_of_folder({**MODEL, "e/config.pbtxt": ENSEMBLE})
    assert line.startswith("TK801 e/config.pbtxt:1 e, version_policy: there is no version folder, ")
    assert told_of_folder({"e/1/.keep": ""}) == []


def test_a_version_without_its_model_file(told_of_folder):
    (line,) = told_of_folder({"m/config.pbtxt": CONFIG, "m/1/Model.py": CODE})
    assert line.startswith(
        "TK814 m/1:None m, default_model_filename: there is no model.py in m/1; did you mean Model.py?"
    )


def test_a_config_that_is_a_folder(told_of_folder):
    (line,) = told_of_folder({"m/config.pbtxt": None, "m/1/model.py": CODE})
    assert line.startswith("TK815 m/config.pbtxt:None m: m/config.pbtxt is a folder, ")


@pytest.mark.parametrize("name", ["reports", ".ipynb_checkpoints"])
def test_a_stray_folder(name, told_of_folder):
    """DEP-02."""
    lines = told_of_folder({**MODEL, f"{name}/x.txt": ""})
    assert [line.split()[0] for line in lines if name in line][-1] == "TK816"
    assert f"Move {name} out of the repository" in lines[-1]


def test_a_config_without_permission(told_of_folder, tmp_path):
    told_of_folder(MODEL)
    os.chmod(tmp_path / "m/config.pbtxt", 0)
    if os.access(tmp_path / "m/config.pbtxt", os.R_OK):
        pytest.skip("this user reads everything")
    assert told_of_folder({})[0].startswith("TK817 m/config.pbtxt:None m: not read: Permission denied")


def test_a_config_of_many_megabytes(told_of_folder):
    (line,) = told_of_folder({"m/config.pbtxt": "#" * (5 * 2**20), "m/1/model.py": CODE})
    assert line.startswith(
        "TK817 m/config.pbtxt:None m: not read: 5242880 bytes; at most 4194304 of a config are read, "
    )


def test_a_config_behind_a_link_that_leads_out(told_of_folder, tmp_path, tmp_path_factory):
    secret = tmp_path_factory.mktemp("elsewhere") / "secret"
    secret.write_text('backend: "do not read me"')
    told_of_folder({"m/1/model.py": CODE})
    (tmp_path / "m/config.pbtxt").symlink_to(secret)
    (line,) = told_of_folder({})
    assert line.startswith("TK817 m/config.pbtxt:None m: not read: a link that leads out of the repository or nowhere")
    assert "do not read me" not in line


def test_a_model_behind_a_link_that_leads_out(told_of_folder, tmp_path, tmp_path_factory):
    told_of_folder(MODEL)
    (tmp_path / "other").symlink_to(tmp_path_factory.mktemp("elsewhere"))
    (line,) = told_of_folder({})
    assert line.startswith("TK818 other:None other: not read: it is a link that leads out of the repository")


def test_labels_that_are_not_there(told_of_folder):
    text = CONFIG.replace("dims: [ 3 ] } ]\n", 'dims: [ 3 ] label_filename: "labels.txt" } ]\n').replace(
        ' label_filename: "labels.txt"', "", 1
    )
    (line,) = told_of_folder({**MODEL, "m/config.pbtxt": text})
    assert line.startswith("TK821 m/config.pbtxt:3 m, output B: there is no m/labels.txt, ")
    (line,) = told_of_folder({"m/labels.txt": None})
    assert line.startswith("TK821 m/config.pbtxt:3 m, output B: labels.txt is a folder, ")


def test_warm_up_data_that_is_not_there(told_of_folder):
    """DEP-09."""
    text = CONFIG + (
        'model_warmup { name: "w" batch_size: 1 inputs { key: "A" value { data_type: TYPE_FP32 dims: [ 3 ] '
        'input_data_file: "raw" } } }'
    )
    (line,) = told_of_folder({**MODEL, "m/config.pbtxt": text})
    assert line.startswith("TK822 m/config.pbtxt:4 m, input A: there is no m/warmup/raw, ")
    assert told_of_folder({"m/warmup/raw": "012345678901"}) == []


def test_a_warm_up_that_never_runs(told_of_folder):
    """DEP-09."""
    text = CONFIG + (
        'model_warmup { name: "w" inputs { key: "A" value { data_type: TYPE_FP32 dims: [ 3 ] zero_data: true } } }'
    )
    (line,) = told_of_folder({**MODEL, "m/config.pbtxt": text})
    assert line.startswith("TK715 m/config.pbtxt:4 m, model_warmup[0]: the sample w has batch_size 0, ")


def test_links_in_a_circle_are_walked_once(told_of_folder, tmp_path):
    told_of_folder(MODEL)
    (tmp_path / "m/2").symlink_to(tmp_path / "m")
    (tmp_path / "again").symlink_to(tmp_path)
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert {line.split()[0] for line in told_of_folder({})} <= {"TK814", "TK816", "TK818"}


def test_an_ensemble_of_a_model_that_does_not_load(told_of_folder):
    outer = ENSEMBLE.replace('"m"', '"e"')
    lines = told_of_folder(
        {
            **MODEL,
            "m/1/model.py": "def (",
            "e/config.pbtxt": ENSEMBLE,
            "e/1/.keep": "",
            "f/config.pbtxt": outer,
            "f/1/.keep": "",
        }
    )
    assert [line.split(":")[0] for line in lines] == [
        "TK314 e/config.pbtxt",
        "TK314 f/config.pbtxt",
        "TK831 m/1/model.py",
    ]


def test_an_output_that_is_declared_twice_in_a_step(told_of_configs):
    tensors = {
        "input": [{"name": "A", "data_type": "TYPE_FP32", "dims": [3]}],
        "output": [{"name": "B", "data_type": "TYPE_FP32", "dims": [3]}],
    }
    step = {"model_name": "m", "model_version": -1, "input_map": {"A": "A"}, "output_map": {"B": "B"}}
    lines = told_of_configs(
        {"name": "m", "backend": "python", **tensors, "output": tensors["output"] * 2},
        {"name": "e", "platform": "ensemble", **tensors, "ensemble_scheduling": {"step": [step]}},
    )
    assert lines[0].startswith("TK315 e, step 0 (m), output B: m declares B 2 times, ")
