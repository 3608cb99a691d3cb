"""The smallest texts that Triton's parser refuses or misreads, and what is said about each."""

from __future__ import annotations

import pytest

TENSORS = """backend: "python"
input [ { name: "A" data_type: TYPE_FP32 dims: [ 3 ] } ]
output [ { name: "B" data_type: TYPE_FP32 dims: [ 3 ] } ]
"""
CODE = "class TritonPythonModel:\n    def execute(self, requests):\n        return [answer(one) for one in requests]\n"


@pytest.fixture
def told_of_text(told_of_folder):
    """What is said of a config that goes on with `more`; whatever stands on line 4 is the mistake."""

    def ask(more: str | bytes, **options: str) -> list[str]:
        text = TENSORS.encode() + (more if isinstance(more, bytes) else more.encode())
        return told_of_folder({"m/config.pbtxt": text, "m/1/model.py": CODE}, **options)

    return ask


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("max_batch_size 4", "column 16: `4`"),
        ("version_policy { latest { num_versions: 1 }", "column 44: the end of the file"),
        ('metric_tags [ { key: "a" value: "b" }, ]', "column 40: `]`"),
        ("max_batch_size: 4dynamic_batching {}", "column 17: `4dynamic_batching`"),
        ('default_model_filename: "model.py', "column 25: a string that is not closed on its line"),
        ("}", "column 1: `}`"),
    ],
)
def test_text_that_does_not_parse(text, found, told_of_text):
    line = told_of_text(text)[0]
    assert line.startswith(f"TK106 m/config.pbtxt:4 m: {found}, ")


def test_a_byte_order_mark(told_of_folder):
    (line,) = told_of_folder({"m/config.pbtxt": b"\xef\xbb\xbf" + TENSORS.encode(), "m/1/model.py": CODE})
    assert line.startswith("TK106 m/config.pbtxt:1 m: column 1: a byte order mark")


def test_a_field_given_twice(told_of_text):
    (line,) = told_of_text("max_batch_size: 4 dynamic_batching {} max_batch_size: 4")
    assert line.startswith("TK107 m/config.pbtxt:4 m: max_batch_size a second time, this field stands once")


def test_a_default_given_twice_is_what_the_server_takes_too(told_of_text):
    assert told_of_text("max_batch_size: 0 max_batch_size: 0") == []


def test_a_placeholder(told_of_text):
    """DEP-03."""
    (line,) = told_of_text("dynamic_batching { max_queue_delay_microseconds: ${delay} }")
    assert line.startswith(
        "TK108 m/config.pbtxt:4 m: the placeholder ${delay} in dynamic_batching, a value is needed. "
        "Put in the value of delay."
    )


def test_a_placeholder_in_a_string(told_of_text):
    """DEP-03."""
    (line,) = told_of_text('metric_tags { key: "a" value: "${site}" }')
    assert line.startswith("TK109 m/config.pbtxt:4 m: the placeholder ${site} in metric_tags, ")


def test_a_key_given_twice(told_of_text):
    (line,) = told_of_text('metric_tags { key: "a" value: "b" } metric_tags { key: "a" value: "c" }')
    assert line.startswith("TK116 m/config.pbtxt:4 m: the key 'a' of metric_tags a second time, ")


def test_bytes_that_are_not_utf8(told_of_text):
    (line,) = told_of_text(b"# caf\xe9")
    assert line.startswith("TK118 m/config.pbtxt:4 m: column 6: a byte that is not UTF-8, ")


def test_a_number_for_no_value(told_of_text):
    (line,) = told_of_text("optimization { priority: 9 }")
    assert line.startswith("TK110 m/config.pbtxt:4 m, optimization.priority: 9 stands for no ")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('max_batch_size: "4"', 'max_batch_size: "4" is not a whole number'),
        ("max_batch_size: 4.0", "max_batch_size: 4.0 is not a whole number"),
        ("max_batch_size: 3000000000", "max_batch_size: 3000000000 is not a whole number"),
        ("response_cache { enable: TRUE }", "response_cache.enable: TRUE is not True or False"),
        ("max_batch_size: 08", "max_batch_size: 08 is not a whole number"),
        ("version_policy { specific { versions: [ 1.5 ] } }", "version_policy.specific.versions[0]: 1.5 is not a "),
        ("name: m", "name: m is not text"),
    ],
)
def test_a_value_of_the_wrong_type_in_the_text(text, found, told_of_text):
    (line,) = told_of_text(text)
    assert line.startswith(f"TK102 m/config.pbtxt:4 m, {found}")


def test_a_field_of_another_message(told_of_text):
    """DEP-06 a."""
    (line,) = told_of_text("max_queue_delay_microseconds: 5")
    assert line.startswith(
        "TK101 m/config.pbtxt:4 m, max_queue_delay_microseconds: ModelConfig has no field max_queue_delay_microseconds"
    )
    assert "Move it to dynamic_batching.max_queue_delay_microseconds" in line


def test_a_misspelt_value_is_told_once(told_of_folder):
    text = TENSORS.replace("TYPE_FP32", "TYPE_FLOAT32", 1)
    (line,) = told_of_folder({"m/config.pbtxt": text, "m/1/model.py": CODE})
    assert line.startswith("TK103 m/config.pbtxt:2 m, input[0].data_type: 'TYPE_FLOAT32' is no DataType")


def test_an_unknown_field_in_an_entry_of_a_map(told_of_text):
    """Found by the fuzzer (seed 34)."""
    (line,) = told_of_text('parameters { key: "a" valu { string_value: "b" } }')
    assert line.startswith(
        "TK119 m/config.pbtxt:4 m: an entry of parameters has valu; did you mean value?, key and value are needed."
    )


def test_a_field_that_is_newer_than_the_server(told_of_text):
    (line,) = told_of_text("model_metrics { }", release="24.10")
    assert line.startswith("TK105 m/config.pbtxt:4 m, model_metrics: model_metrics came with 24.11 (Triton 2.52.0)")
    assert told_of_text("model_metrics { }", release="24.12-py3") == []


def test_everything_wrong_is_told_at_once(told_of_text):
    lines = told_of_text("bogus: 1\nmax_batch_size: x y\nversion_policy { all {} }}\n")
    assert [line.split()[:2] for line in lines] == [
        ["TK106", "m/config.pbtxt:6"],
        ["TK106", "m/config.pbtxt:6"],
        ["TK101", "m/config.pbtxt:4"],
        ["TK102", "m/config.pbtxt:5"],
    ]
