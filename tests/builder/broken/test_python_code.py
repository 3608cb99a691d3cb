"""The smallest `model.py` files with a mistake that can be seen without running them."""

from __future__ import annotations

import pytest

CONFIG = """backend: "python"
input [ { name: "A" data_type: TYPE_FP32 dims: [ 3 ] } ]
output [ { name: "B" data_type: TYPE_FP32 dims: [ 3 ] } ]
"""
HEAD = "import triton_python_backend_utils as pb_utils\n\nclass TritonPythonModel:\n"
GOOD = """    def execute(self, requests):
        return [self.answer(request) for request in requests]
    def answer(self, request):
        x = pb_utils.get_input_tensor_by_name(request, "A").as_numpy()
        return pb_utils.InferenceResponse([pb_utils.Tensor("B", x)])
"""


@pytest.fixture
def told_of_code(told_of_folder):
    """What is said of a model whose class has this body."""

    def ask(body: str, config: str = CONFIG, head: str = HEAD, **files: str) -> list[str]:
        return told_of_folder({"m/config.pbtxt": config, "m/1/model.py": head + body, **files})

    return ask


def test_good_code_has_no_findings(told_of_code):
    assert told_of_code(GOOD) == []


def test_code_that_is_no_python(told_of_code):
    (line,) = told_of_code("    def execute(self, requests:\n")
    assert line.startswith("TK831 m/1/model.py:4 m: no Python: ")


def test_code_without_the_class(told_of_code):
    (line,) = told_of_code(GOOD, head=HEAD.replace("TritonPythonModel", "Model"))
    assert line.startswith("TK832 m/1/model.py:1 m: there is no class TritonPythonModel, ")


def test_a_class_by_another_name_or_from_another_file(told_of_code):
    assert told_of_code(GOOD + "\nTritonPythonModel = Model\n", head=HEAD.replace("TritonPythonModel", "Model")) == []
    assert told_of_code("", head="from served import TritonPythonModel\n") == []


def test_a_class_without_execute(told_of_code):
    (line,) = told_of_code("    def initialize(self, args):\n        pass\n")
    assert line.startswith("TK833 m/1/model.py:1 m: TritonPythonModel has no method execute, ")
    assert told_of_code("    pass\n", head=HEAD.replace("Model:", "Model(Base):")) == []


@pytest.mark.parametrize(
    "method", ["def initialize(self):", "def __init__(self, args):", "def initialize(self, a, b):"]
)
def test_methods_with_other_arguments(method, told_of_code):
    (line,) = told_of_code(f"    {method}\n        pass\n{GOOD}")
    assert line.startswith("TK840 m/1/model.py:4 m: ")


def test_names_that_the_config_does_not_have(told_of_code):
    """PYB-10."""
    lines = told_of_code(GOOD.replace('"A"', '"a"').replace('"B"', '"BB"'))
    assert lines[0].startswith("TK834 m/1/model.py:7 m, input a: the code names the input a; did you mean A?")
    assert lines[1].startswith("TK834 m/1/model.py:8 m, output BB: the code names the output BB")


def test_names_of_a_model_that_completes_its_config_may_be_any(told_of_code):
    more = "    @staticmethod\n    def auto_complete_config(config):\n        return config\n"
    assert told_of_code(GOOD.replace('"B"', '"BB"') + more) == []


@pytest.mark.parametrize("end", ["        return None\n", "        print(requests)\n", "        return\n"])
def test_execute_that_answers_nothing(end, told_of_code):
    """BAT-03."""
    (line,) = told_of_code("    def execute(self, requests):\n" + end)
    assert line.startswith("TK835 m/1/model.py:")
    sends = "    def execute(self, requests):\n        requests[0].get_response_sender().send(flags=1)\n"
    assert told_of_code(sends) == []


def test_execute_that_answers_the_first_request_only(told_of_code):
    """BAT-03."""
    body = """    def execute(self, requests):
        x = pb_utils.get_input_tensor_by_name(requests[0], "A").as_numpy()
        return [pb_utils.InferenceResponse([pb_utils.Tensor("B", x)])]
"""
    (line,) = told_of_code(body, CONFIG + "max_batch_size: 4 dynamic_batching { preserve_ordering: true }")
    assert line.startswith("TK836 m/1/model.py:5 m: execute looks at requests[0] only, ")


def test_numpy_of_what_may_be_on_the_gpu(told_of_code):
    """PYB-01 d."""
    no = CONFIG + 'parameters { key: "FORCE_CPU_ONLY_INPUT_TENSORS" value { string_value: "no" } }'
    (line,) = told_of_code(GOOD, no)
    assert line.startswith("TK837 m/1/model.py:7 m: as_numpy() with FORCE_CPU_ONLY_INPUT_TENSORS")
    assert told_of_code(GOOD + "    def place(self, x):\n        return x.is_cpu()\n", no) == []


def test_a_plain_call_of_a_decoupled_model(told_of_code):
    """VLL-06."""
    body = GOOD.replace(
        "        return pb_utils.Inf",
        '        pb_utils.InferenceRequest(model_name="llm", inputs=[]).exec()\n        return pb_utils.Inf',
    )
    llm = {
        "llm/config.pbtxt": CONFIG + "model_transaction_policy { decoupled: true }",
        "llm/1/model.py": HEAD + "    def execute(self, requests):\n        requests[0].get_response_sender()\n",
    }
    (line,) = told_of_code(body, **llm)
    assert line.startswith("TK838 m/1/model.py:8 m: llm is decoupled, and exec() expects one answer, ")
    assert told_of_code(body.replace("exec()", "exec(decoupled=True)"), **llm) == []


def test_a_call_of_a_model_that_is_not_there(told_of_code):
    body = (
        GOOD + '    def ask(self):\n        return pb_utils.InferenceRequest(model_name="nope").exec(decoupled=True)\n'
    )
    (line,) = told_of_code(body)
    assert line.startswith("TK839 m/1/model.py:10 m: the code calls nope, ")
