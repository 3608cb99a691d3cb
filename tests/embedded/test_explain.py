"""Why a model does not load, in plain words. The texts on the left are the server's, as it wrote them."""

from __future__ import annotations

import pytest

from embedded.explain import explain
from embedded.loads import Loads
from embedded.log import parse_line

IMPORT_ERROR = (
    "Internal: ModuleNotFoundError: No module named 'pandas'\n\nAt:\n  /r/imp/1/helper.py(4): <module>\n"
    "  /r/imp/1/model.py(1): <module>\n  <frozen importlib._bootstrap>(241): _call_with_frames_removed\n"
)


def test_the_innermost_place_in_the_code_is_named() -> None:
    problem = explain("imp", IMPORT_ERROR)
    assert problem.words == "ModuleNotFoundError: No module named 'pandas'"
    assert problem.where == "/r/imp/1/helper.py, line 4, in <module>"
    assert problem.advice.startswith("Install the Python package that holds `pandas`")
    assert str(problem).splitlines()[0] == (
        "imp: ModuleNotFoundError: No module named 'pandas' (/r/imp/1/helper.py, line 4, in <module>)"
    )


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        ("Invalid argument: instance group a_0 of model a has kind KIND_GPU but no GPUs are available", "use KIND_CPU"),
        ("Internal: FileNotFoundError: [Errno 2] No such file or directory: '/r/w.bin'", "missing: /r/w.bin. Fetch"),
        ("Internal: ValueError: failed to stat file /r/a/1/model.onnx", "missing: /r/a/1/model.onnx. Fetch"),
        ("at least one version must be available under the version policy of model 'a'", "make a folder `1`"),
        ("unable to find backend library for backend 'tensorrt', try specifying runtime", "Serve `tensorrt` models on"),
        ("Failed to increase the shared memory pool size for key 'x' to 5 bytes.", "make it larger"),
        ("failed to read text proto from /r/a/config.pbtxt", "config.pbtxt is not valid"),
        (
            'failed to read text proto from /r/a/config.pbtxt: 2:15: Message type "inference.ModelConfig" has no field '
            'named "model_metrics".',
            "does not know the field `model_metrics`",
        ),
        ("model 'a', tensor 'x': for the model ... the first dimension must be -1; but", "has a fixed batch"),
        (
            "Internal: AttributeError: module '1.model' has no attribute 'TritonPythonModel'",
            "must define `class Triton",
        ),
        ("something that nobody has seen", ""),
    ],
)
def test_frequent_reasons_come_with_advice(words: str, advice: str) -> None:
    given = explain("a", words).advice
    assert advice in given if advice else given == ""


def read(*lines: str) -> Loads:
    """The state after these lines."""
    loads = Loads()
    for line in lines:
        loads.read(parse_line(line))
    return loads


def test_a_model_goes_from_loading_to_ready() -> None:
    seen: list[tuple[str, str]] = []
    loads = Loads(on_change=lambda load: seen.append((load.model, load.state)))
    for line in (
        'I1129 18:01:07.384407 2283 model_lifecycle.cc:472] "loading: slow:1"',
        "I1129 18:01:08.749688 2283 model_lifecycle.cc:839] \"successfully loaded 'slow'\"",
    ):
        assert loads.read(parse_line(line))
    assert seen == [("slow", "loading"), ("slow", "ready")]
    assert loads.problems == {}


def test_the_parsers_own_words_are_added_to_a_config_that_cannot_be_read() -> None:
    loads = read(
        "[libprotobuf ERROR /x/text_format.cc:337] Error parsing text-format inference.ModelConfig: 2:15: Message type "
        '"inference.ModelConfig" has no field named "nonsense".',
        "E1129 18:08:31.812159 7033 model_repository_manager.cc:1460] \"Poll failed for model directory 'bad': failed "
        'to read text proto from /r/bad/config.pbtxt"',
    )
    assert 'no field named "nonsense"' in loads.problems["bad"].words


def test_an_ensemble_is_named_with_its_reason() -> None:
    loads = read(
        'E1129 18:10:32.237321 8071 model_repository_manager.cc:703] "Invalid argument: in ensemble ens, ensemble '
        "tensor Y: inconsistent data type: TYPE_INT32 is inferred from model ens while TYPE_FP32 is inferred from "
        'model okm"',
        "E1129 18:10:32.237333 8071 model_repository_manager.cc:703] \"Invalid argument: ensemble 'ens2' depends on "
        "'imp' which has no loaded version. Model 'imp' loading failed with error: version 1 is at UNAVAILABLE state: "
        "Internal: ModuleNotFoundError: No module named 'pandas'\\n\\nAt:\\n  /r/imp/1/model.py(1): <module>\\n;\"",
    )
    assert loads.problems["ens"].words.startswith("ensemble tensor Y: inconsistent data type")
    assert loads.problems["ens2"].words == "it depends on 'imp', which does not load"
    assert loads.problems["ens2"].advice == "Make `imp` load first; the reason it does not is its own."


def test_the_first_reason_for_a_model_is_kept() -> None:
    loads = read(
        "I1129 18:08:32.591652 7070 pb_stub.cc:2105]  Failed to preinitialize Python stub: Python model file not found "
        "in '/r/nofile/1/model.py'",
    )
    loads.fail("nofile", "its process was ended by signal 9")
    assert loads.problems["nofile"].words == "Python model file not found in '/r/nofile/1/model.py'"
