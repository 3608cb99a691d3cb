"""The pbtxt reader against protobuf's own, on random messages; and against texts that no one should write."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
from google.protobuf import text_format
from hypothesis import given, settings
from hypothesis import strategies as st
from tritonclient.grpc.model_config_pb2 import ModelConfig

from builder.fields import ROOT, FieldInfo, enums, messages
from builder.messages import config_message, config_of
from builder.pbtxt import MAX_BYTES, Message, ProblemKind, offset_of, read
from builder.pbtxt.tokens import string_value, tokenize

_INTEGERS = {
    "int32": st.integers(-(2**31), 2**31 - 1),
    "uint32": st.integers(0, 2**32 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "uint64": st.integers(0, 2**64 - 1),
}
_KNOWN = {field.name for field in ModelConfig.DESCRIPTOR.fields}


def values(info: FieldInfo, depth: int) -> st.SearchStrategy[Any]:
    """Values of one field."""
    if info.kind == "enum":
        one: st.SearchStrategy[Any] = st.sampled_from(sorted(enums()[info.type]))
    elif info.kind == "message":
        one = configs(info.type, depth + 1)
    elif info.type == "string":
        one = st.text(st.characters(codec="utf-8", exclude_characters="\0$"), max_size=8)
    elif info.type == "bool":
        one = st.booleans()
    elif info.type in ("float", "double"):
        one = st.floats(width=32, allow_nan=False)
    else:
        one = _INTEGERS[info.type]
    if info.map_key is not None:
        keys = st.text("abc", max_size=3) if info.map_key == "string" else _INTEGERS[info.map_key]
        return st.dictionaries(keys, one, min_size=1, max_size=3)
    return st.lists(one, min_size=1, max_size=3) if info.repeated else one


def configs(message: str, depth: int = 0) -> st.SearchStrategy[dict[str, Any]]:
    """Messages of a type, with at most one member of each oneof."""
    fields = [info for info in messages().get(message, {}).values() if depth < 4 or info.kind != "message"]

    @st.composite
    def make(draw: st.DrawFn) -> dict[str, Any]:
        chosen = (
            draw(st.lists(st.sampled_from(fields), max_size=4, unique_by=lambda info: info.oneof or info.name))
            if fields
            else []
        )
        return {info.name: draw(values(info, depth)) for info in chosen}

    return make()


def comparable(value: Any) -> Any:
    """Without what the message leaves out: empty lists, defaults, and floats as 32 bits hold them."""
    if isinstance(value, dict):
        return {
            key: comparable(one) for key, one in value.items() if comparable(one) not in ([], 0, 0.0, "", False, None)
        }
    if isinstance(value, list):
        return [comparable(one) for one in value]
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else value
    return value


@given(configs(ROOT))
@settings(max_examples=150, deadline=None)
def test_what_protobuf_writes_is_read_as_the_same(config: dict[str, Any]) -> None:
    message = config_message(config)
    for text in (
        text_format.MessageToString(message),
        text_format.MessageToString(message, as_one_line=True, as_utf8=True),
    ):
        document = read(text)
        assert document.problems == ()
        again = config_message(document.config)
        assert comparable(config_of(again)) == comparable(config_of(message))


@pytest.mark.filterwarnings("ignore:invalid escape sequence:DeprecationWarning")  # Python's own, in its reading
@given(configs(ROOT), st.data())
@settings(max_examples=150, deadline=None)
def test_what_is_refused_by_protobuf_is_refused_here(config: dict[str, Any], data: st.DataObject) -> None:
    text = text_format.MessageToString(config_message(config))
    at = data.draw(st.integers(0, len(text)))
    piece = data.draw(
        st.sampled_from(["{", "}", "[", ":", ",", '"', "x", "1.5", "\n", "-", "<", "#", "TYPE_FP32", "bogus: 1 "])
    )
    broken = text[:at] + piece + text[at:]
    # Python's reader refuses a minus apart from its number, which the server's takes: it is given them joined.
    try:
        text_format.Parse(re.sub(r"-\s+", "-", broken), ModelConfig())
    except text_format.ParseError:
        # It refuses a few other texts that the server's takes (a default given twice): these are left out.
        if not any(line.count(":") > 1 for line in broken.splitlines()):
            assert any(one.kind is not ProblemKind.DUPLICATE_KEY for one in read(broken).problems)


def test_a_minus_may_stand_apart_from_its_number_as_the_server_has_it() -> None:
    document = read('input { name: "X" data_type: TYPE_FP32 dims: [ -\n1, - 1 ] }')
    assert document.problems == () and document.config["input"][0]["dims"] == [-1, -1]


@given(st.text(max_size=300))
@settings(max_examples=300, deadline=None)
def test_any_text_gives_a_document(text: str) -> None:
    document = read(text)
    for one in document.problems:
        line, column = document.position(one.offset)
        assert 1 <= line <= text.count("\n") + 1 and column >= 1


@given(st.binary(max_size=300))
@settings(max_examples=200, deadline=None)
def test_any_bytes_give_a_document(data: bytes) -> None:
    read(data)


PIECES = st.sampled_from(
    [
        "{",
        "}",
        "[",
        "]",
        "<",
        ">",
        ":",
        ",",
        ";",
        '"',
        "'",
        "\\",
        "\n",
        " ",
        "#",
        "-",
        "0x",
        "1e",
        "99999999999999999999",
    ]
    + [
        "input",
        "dims",
        "name",
        "data_type",
        "TYPE_FP32",
        "parameters",
        "key",
        "value",
        "step",
        "ensemble_scheduling",
        "${x}",
    ]
)


@given(st.lists(PIECES, max_size=60))
@settings(max_examples=400, deadline=None)
def test_any_pieces_give_a_document(pieces: list[str]) -> None:
    read("".join(pieces))
    read(" ".join(pieces))


@pytest.mark.parametrize(
    "text",
    [
        "{" * 100_000,
        "input " * 100_000,
        "input {" * 100_000,
        "a { " * 1_000 + "}" * 1_000,
        "dims: [" * 50_000,
        "bogus: [" * 50_000,
        "#" * 100_000,
        " " * 1_000_000,
        '"' * 100_001,
        "\\" * 100_000,
        "max_batch_size: " + "9" * 100_000,
        "max_batch_size: 0x" + "f" * 100_000,
        "max_batch_size: -" * 10_000,
        'name: "' + "\\" * 99_999,
    ],
    ids=lambda text: text[:12],
)
def test_endless_texts_end_soon(text: str) -> None:
    assert len(read(text).problems) <= 50


def test_a_text_of_100_megabytes_is_not_read() -> None:
    document = read(b"#" * (100 * 2**20))
    (problem,) = document.problems
    assert problem.kind is ProblemKind.TOO_LARGE and f"at most {MAX_BYTES}" in problem.expected


TEXT = """name: "m"  # the name
input [
  { name: "A" data_type: TYPE_FP32 dims: [ 1, 2 ] },
  < name: "B"; data_type: 6, dims: 3 dims: 0x10 >
]
parameters { key: "k" value { string_value: "a" 'b' "\\x41\\101\\n" } }
sequence_batching { direct { minimum_slot_utilization: .5e0f } }
"""


def test_every_form_of_the_text() -> None:
    document = read(TEXT)
    assert document.problems == ()
    assert document.config == {
        "name": "m",
        "input": [
            {"name": "A", "data_type": "TYPE_FP32", "dims": [1, 2]},
            {"name": "B", "data_type": "TYPE_INT8", "dims": [3, 16]},
        ],
        "parameters": {"k": {"string_value": "abAA\n"}},
        "sequence_batching": {"direct": {"minimum_slot_utilization": 0.5}},
    }
    assert isinstance(document.config, Message)


@pytest.mark.parametrize(
    ("path", "place"),
    [
        (("name",), (1, 1)),
        (("input", 0), (3, 3)),
        (("input", 0, "dims"), (3, 44)),
        (("input", 1, "dims", 1), (4, 44)),
        (("parameters", "k"), (6, 12)),
        (("sequence_batching", "direct", "minimum_slot_utilization"), (7, 30)),
        (("input", 7, "dims"), (2, 1)),
        (("nothing",), (1, 1)),
    ],
)
def test_every_field_has_its_place(path: tuple[str | int, ...], place: tuple[int, int]) -> None:
    document = read(TEXT)
    assert document.locate(path) == place
    assert offset_of(document.config, path) >= 0


def test_fields_that_nobody_knows_are_kept() -> None:
    document = read('bogus { a: 1 b: "x" c: [ 1, 2.5 ] d: true e: -3 } bogus: 7')
    assert document.config == {"bogus": [{"a": 1, "b": "x", "c": [1, 2.5], "d": True, "e": -3}, 7]}
    assert [one.kind for one in document.problems] == [ProblemKind.UNKNOWN_FIELD, ProblemKind.UNKNOWN_FIELD]


@given(st.binary(max_size=30))
def test_escapes_are_read_as_protobuf_writes_them(data: bytes) -> None:
    text = "".join(f"\\{byte:03o}" for byte in data)
    value, broken = string_value(f'"{text}"')
    assert value.encode("utf-8", "surrogateescape") == data and broken == ""


def test_tokens_cover_the_text() -> None:
    kinds, texts, offsets = tokenize(TEXT)
    assert all(TEXT[offset : offset + len(text)] == text for text, offset in zip(texts, offsets, strict=True))
    assert len(kinds) == len(texts) == len(offsets)
