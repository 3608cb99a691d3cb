"""The stand-in itself: what it offers to a test, and what it refuses that the server lets pass."""

from __future__ import annotations

import logging
import os
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tritonkit.testing import LoadError, ModelError, RequestRefused, RuleBroken, load_model, on_gpu

MakeModel = Callable[..., Path]
CONFIG = """
backend: "python"
input { name: "X" data_type: TYPE_FP32 dims: [-1] }
output { name: "Y" data_type: TYPE_FP32 dims: [-1] }
"""


@pytest.fixture
def make_model(tmp_path: Path) -> MakeModel:
    """Writes a model folder: name, code of model.py, other files."""

    def make(name: str, code: str, config: str = CONFIG, **files: str) -> Path:
        folder = tmp_path / name / "1"
        folder.mkdir(parents=True)
        (folder.parent / "config.pbtxt").write_text(config)
        (folder / "model.py").write_text("import triton_python_backend_utils as pb_utils\n" + textwrap.dedent(code))
        for neighbour, text in files.items():
            (folder / f"{neighbour}.py").write_text(textwrap.dedent(text))
        return folder.parent

    return make


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("unknown_output", "output 'Z' is not in the configuration, which has: Y, WORDS"),
        ("wrong_type", "output 'Y' has type FP64, the configuration says FP32"),
        ("wrong_rank", r"output 'Y' has shape \[2\], the configuration says \[-1,2\]"),
        ("wrong_size", r"output 'Y' has shape \[1,3\], the configuration says \[-1,2\]"),
        ("twice", "output 'Y' is twice in one response"),
        ("none", "no answer and no FINAL flag within 0.2 s"),
        ("list_of_none", "no answer and no FINAL flag within 0.2 s"),
        ("sender_twice", "sent a second response"),
        ("sender_raises_after_final", "raised ValueError: too late after its answer. .* hangs at its next request"),
    ],
)
def test_what_the_server_does_not_check_is_refused(models: Path, mode: str, words: str) -> None:
    with load_model(models / "modes", timeout_s=0.2) as model, pytest.raises(RuleBroken, match=words):
        model.infer({"MODE": mode})


@pytest.mark.parametrize("mode", ["after_final", "final_twice"])
def test_a_response_after_the_final_one_is_refused(models: Path, mode: str) -> None:
    with load_model(models / "stream") as model, pytest.raises(RuleBroken, match="after the one with the FINAL flag"):
        list(model.stream({"MODE": mode}))


def test_a_model_that_did_wrong_answers_the_next_request(models: Path) -> None:
    with load_model(models / "modes") as model:
        with pytest.raises(ModelError, match="these words"):
            model.infer({"MODE": "raises"})
        assert model.infer({"MODE": "right"})["Y"].tolist() == [[2, 2]]


def test_several_requests_make_one_call_with_an_outcome_each(models: Path) -> None:
    rows = [np.full((1, 1), value, np.float32) for value in (1, -2, 3)]
    with load_model(models / "echo") as model:
        first, refused, last = model.execute([{"IN": row} for row in rows])
    assert isinstance(first, dict) and first["OUT"].tolist() == [[1]]
    assert isinstance(refused, ModelError) and (refused.code, refused.message) == ("INVALID_ARG", "minus two")
    assert isinstance(last, dict) and last["OUT"].tolist() == [[3]]


def test_text_and_numbers_are_taken_without_numpy(models: Path) -> None:
    with load_model(models / "count") as model:
        assert [answer["N"].tolist() for answer in model.stream({"UP_TO": [2]})] == [[0], [1]]
    with load_model(models / "modes") as model:
        assert model.infer({"MODE": b"right", "X": [[1, 2]]})["Y"].tolist() == [[2, 4]]


def test_the_model_cannot_change_the_array_of_the_test(make_model: MakeModel) -> None:
    folder = make_model(
        "greedy",
        """
        class TritonPythonModel:
            def execute(self, requests):
                x = pb_utils.get_input_tensor_by_name(requests[0], "X").as_numpy()
                x[:] = 0
                return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", x)])]
        """,
    )
    given = np.ones(2, np.float32)
    with load_model(folder) as model:
        assert model.infer({"X": given})["Y"].tolist() == [0, 0]
    assert given.tolist() == [1, 1]


def test_a_cancelled_stream_ends_early(models: Path) -> None:
    with load_model(models / "count") as model:
        stream = model.stream({"UP_TO": np.array([10_000_000], np.int32)})
        first = next(iter(stream))
        stream.cancel()
        seen = sum(1 for _ in stream)
    assert first["N"].tolist() == [0]
    assert seen < 10_000_000


def test_other_models_can_be_plain_functions(models: Path) -> None:
    def echo(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        if arrays["IN"][0, 0] == -2:
            raise ModelError("not today", "UNAVAILABLE")
        return {"OUT": arrays["IN"] + 1}

    def count(arrays: dict[str, np.ndarray]) -> object:
        return ({"N": np.array([value])} for value in range(int(arrays["UP_TO"][0])))

    with load_model(models / "asks", models={"echo": echo, "count": count}) as model:
        assert model.infer({"MODE": "right"})["SAID"].tolist() == [b"[('OUT', [[2.0, 3.0]])]"]
        assert model.infer({"MODE": "it_answers_with_error"})["SAID"].tolist() == [b"INTERNAL: not today"]
        assert model.infer({"MODE": "decoupled"})["SAID"].tolist() == [b"[('N', [0])]", b"[('N', [1])]"]


def test_a_model_that_asks_itself_is_told(make_model: MakeModel) -> None:
    folder = make_model(
        "selfish",
        """
        class TritonPythonModel:
            def execute(self, requests):
                x = requests[0].inputs()[0]
                inner = pb_utils.InferenceRequest(model_name="selfish", requested_output_names=["Y"], inputs=[x])
                return [inner.exec()]
        """,
    )
    with load_model(folder, timeout_s=0.2) as model:
        model.models["selfish"] = model
        with pytest.raises(RuleBroken, match="no answer"):
            model.infer({"X": np.ones(1, np.float32)})


def test_other_models_cannot_be_asked_while_initializing(make_model: MakeModel) -> None:
    folder = make_model(
        "eager",
        """
        class TritonPythonModel:
            def initialize(self, args):
                pb_utils.InferenceRequest(model_name="other", requested_output_names=[], inputs=[]).exec()
            def execute(self, requests): ...
        """,
    )
    with pytest.raises(LoadError, match=r"in execute\(\) only"):
        load_model(folder, models={"other": lambda arrays: arrays})


def test_neighbours_of_two_models_may_have_one_name(make_model: MakeModel) -> None:
    code = """
        import helper

        class TritonPythonModel:
            def execute(self, requests):
                import late  # only now, and from its own folder
                given = pb_utils.get_input_tensor_by_name(requests[0], "X").as_numpy()
                return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", given * helper.FACTOR + late.ADDED)])]
        """
    two = make_model("two", code, helper="FACTOR = 2", late="ADDED = 0")
    three = make_model(
        "three", code, helper="import inner\nFACTOR = inner.FACTOR", inner="FACTOR = 3", late="ADDED = 1"
    )
    path, modules = list(sys.path), set(sys.modules)
    with load_model(two) as model, load_model(three) as other:
        x = np.ones(1, np.float32)
        answers = [each.infer({"X": x})["Y"].tolist() for each in (model, other, model)]
    assert answers == [[2], [4], [2]]
    assert sys.path == path
    assert not {"helper", "late", "inner", "triton_python_backend_utils"} & (set(sys.modules) - modules)


def test_a_model_is_what_its_files_say_now_and_no_compiled_copy_is_left(
    make_model: MakeModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    code = """
        import helper

        class TritonPythonModel:
            def execute(self, requests):
                given = pb_utils.get_input_tensor_by_name(requests[0], "X").as_numpy()
                return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", given * helper.FACTOR)])]
        """
    folder = make_model("changed", code, helper="FACTOR = 2")
    answers = []
    for text in ("FACTOR = 2", "FACTOR = 3"):
        (folder / "1" / "helper.py").write_text(text)
        os.utime(folder / "1" / "helper.py", (1, 1))  # within one second, and as long as before
        with load_model(folder) as model:
            answers.append(model.infer({"X": np.ones(1, np.float32)})["Y"].tolist())
    assert answers == [[2], [3]]
    assert not (folder / "1" / "__pycache__").exists()


def test_a_package_beside_the_model_is_imported_too(make_model: MakeModel) -> None:
    folder = make_model(
        "packaged",
        """
        from parts.words import WORDS
        import parts.more

        class TritonPythonModel:
            def execute(self, requests):
                assert (WORDS, parts.more.MORE) == ("words", "words and more")
                return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", requests[0].inputs()[0].as_numpy())])]
        """,
    )
    package = folder / "1" / "parts"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "words.py").write_text("WORDS = 'words'")
    (package / "more.py").write_text("from parts.words import WORDS\nMORE = WORDS + ' and more'")
    with load_model(folder) as model:
        assert model.infer({"X": np.ones(1, np.float32)})["Y"].tolist() == [1]


def test_a_library_comes_before_a_neighbour_of_its_name(make_model: MakeModel) -> None:
    folder = make_model(
        "shadow",
        """
        import json

        class TritonPythonModel:
            def initialize(self, args):
                json.loads(args["model_config"])
            def execute(self, requests): ...
        """,
        json="raise RuntimeError('never')",
    )
    load_model(folder).close()


def test_an_asyncio_execute_is_run(make_model: MakeModel) -> None:
    folder = make_model(
        "asynchronous",
        """
        class TritonPythonModel:
            async def execute(self, requests):
                sender = requests[0].get_response_sender()
                sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("Y", requests[0].inputs()[0].as_numpy())]))
                sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        """,
        CONFIG + "model_transaction_policy { decoupled: true }",
    )
    with load_model(folder) as model:
        assert [answer["Y"].tolist() for answer in model.stream({"X": [1.5]})] == [[1.5]]


def test_parameters_metrics_and_messages_can_be_seen(make_model: MakeModel, caplog: pytest.LogCaptureFixture) -> None:
    folder = make_model(
        "seen",
        """
        import json
        import numpy as np

        class TritonPythonModel:
            def initialize(self, args):
                self.size = float(json.loads(args["model_config"])["parameters"]["size"]["string_value"])
                family = pb_utils.MetricFamily("asked", "requests", pb_utils.MetricFamily.COUNTER)
                self.asked = family.Metric(labels={"model": args["model_name"]})
            def execute(self, requests):
                self.asked.increment(1)
                pb_utils.Logger.log_warn("was asked")
                return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", np.array([self.size], np.float32))])]
            def finalize(self):
                pb_utils.Logger.log_info("the end")
        """,
    )
    with caplog.at_level(logging.INFO), load_model(folder, parameters={"size": "3"}) as model:
        assert model.infer({"X": [0]})["Y"].tolist() == [3]
        (counter,) = model.metrics["asked"].metrics.values()
    assert counter.value() == 1
    assert [(record.name, record.message) for record in caplog.records] == [
        ("tritonkit.model.seen", "was asked"),
        ("tritonkit.model.seen", "the end"),
    ]


def test_requests_from_several_threads_are_executed_one_after_another(make_model: MakeModel) -> None:
    folder = make_model(
        "single",
        """
        import time

        class TritonPythonModel:
            busy = False
            def execute(self, requests):
                assert not self.busy
                self.busy = True
                time.sleep(0.02)
                self.busy = False
                return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", requests[0].inputs()[0].as_numpy())])]
        """,
    )
    with load_model(folder) as model:
        answers: list[float] = []
        threads = [
            threading.Thread(target=lambda value=value: answers.append(float(model.infer({"X": [value]})["Y"][0])))
            for value in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(answers) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("code", "config", "words"),
    [
        ("import nothing_of_this_name", CONFIG, "No module named 'nothing_of_this_name'"),
        ("x = 1", CONFIG, "has no attribute 'TritonPythonModel'"),
        ("class TritonPythonModel:\n    pass", CONFIG, "no method 'execute'"),
        ("x = 1", CONFIG + "nonsense: 1", 'no field named "nonsense"'),
        ("x = 1", CONFIG.replace('"python"', '"onnxruntime"'), "backend is 'onnxruntime'"),
        ("class TritonPythonModel:\n    def execute(self): ...", 'backend: "python"', "the configuration has no input"),
        (
            "class TritonPythonModel:\n    def initialize(self, args): raise ValueError('no weights')",
            CONFIG,
            "no method 'execute'",
        ),
    ],
)
def test_what_cannot_be_loaded_is_told(make_model: MakeModel, code: str, config: str, words: str) -> None:
    with pytest.raises(LoadError, match=words):
        load_model(make_model("broken", code, config))


def test_a_missing_model_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "config.pbtxt").write_text(CONFIG)
    with pytest.raises(LoadError, match="Python model file not found in '.*/1/model.py'"):
        load_model(tmp_path)


def test_a_request_that_does_not_fit_never_reaches_the_model(models: Path) -> None:
    with load_model(models / "echo") as model:
        model.instance.execute = None
        with pytest.raises(RequestRefused, match="batch-size must be <= 4"):
            model.infer({"IN": np.ones((5, 1), np.float32)})


def test_rows_that_got_lost_are_told(make_model: MakeModel) -> None:
    folder = make_model(
        "loses",
        """
        class TritonPythonModel:
            def execute(self, requests):
                x = requests[0].inputs()[0].as_numpy()
                return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", x[:1])])]
        """,
        CONFIG + "max_batch_size: 4",
    )
    with load_model(folder) as model, pytest.raises(RuleBroken, match="1 rows in front, the request had 3"):
        model.infer({"X": np.ones((3, 1), np.float32)})


def test_an_input_on_a_gpu_can_only_be_taken_by_dlpack(make_model: MakeModel) -> None:
    folder = make_model(
        "looks",
        """
        import numpy as np
        import torch

        class TritonPythonModel:
            def execute(self, requests):
                x = requests[0].inputs()[0]
                if x.is_cpu():
                    return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", x.as_numpy())])]
                doubled = 2 * torch.from_dlpack(x.to_dlpack())
                try:
                    x.as_numpy()
                except pb_utils.TritonModelException:
                    return [pb_utils.InferenceResponse([pb_utils.Tensor.from_dlpack("Y", doubled)])]
        """,
    )
    x = np.array([1, 2], np.float32)
    with load_model(folder) as model:
        assert model.infer({"X": x})["Y"].tolist() == [1, 2]
        assert model.infer({"X": on_gpu(x)})["Y"].tolist() == [2, 4]
