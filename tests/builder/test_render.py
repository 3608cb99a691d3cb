"""Rendering: the same twice, the same parsed back, and what the message cannot hold is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder import DeclarationError, RenderError, make_plan
from builder.examine import examine
from builder.fields import ROOT, enums, messages
from builder.messages import config_text, parsed_config
from builder.pipelines.assistant import assistant
from builder.pipelines.detect import detect
from builder.pipelines.transcribe import transcribe
from builder.render import HEADER, render_plan

SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "string": st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "uint32": st.integers(0, 2**32 - 1),
    "uint64": st.integers(0, 2**64 - 1),
    "float": st.integers(-1000, 1000).map(float),
    "double": st.integers(-1000, 1000).map(float),
}


def _values(name: str, depth: int) -> st.SearchStrategy[dict[str, Any]]:
    """Values of a message: any of its fields, at most one of each oneof."""
    known = [info for info in messages().get(name, {}).values() if depth or info.kind != "message"]
    if not known:
        return st.just({})
    chosen = st.lists(st.sampled_from(known), max_size=4, unique_by=lambda info: info.oneof or info.name)
    return chosen.flatmap(lambda infos: st.fixed_dictionaries({info.name: _field(info, depth) for info in infos}))


def _field(info: Any, depth: int) -> st.SearchStrategy[Any]:
    if info.kind == "enum":
        one = st.sampled_from(sorted(enums()[info.type]))
    elif info.kind == "message":
        one = st.deferred(lambda: _values(info.type, depth - 1))
    else:
        one = SCALARS[info.type]
    if info.map_key is not None:
        return st.dictionaries(SCALARS[info.map_key], one, min_size=1, max_size=2)
    return st.lists(one, min_size=1, max_size=2) if info.repeated else one


def _without_defaults(value: Any, name: str = ROOT) -> Any:
    """What is left of a config in a message: values that equal the field's default do not show in it."""
    known = messages().get(name, {})
    result = {}
    for key, one in value.items():
        info = known[key]
        if info.kind == "message" and info.map_key is not None:
            one = {of: _without_defaults(inner, info.type) for of, inner in one.items()}
        elif info.kind == "message" and info.repeated:
            one = [_without_defaults(inner, info.type) for inner in one]
        elif info.kind == "message":
            one = _without_defaults(one, info.type)
        elif info.oneof is None and not info.repeated and info.map_key is None and one in _defaults(info):
            continue
        result[key] = one
    return result


def _defaults(info: Any) -> tuple[Any, ...]:
    return (next(iter(_by_number(info.type))),) if info.kind == "enum" else (0, "", False)


def _by_number(enum: str) -> list[str]:
    from builder.fields import table

    rows = table()["enum_values"]
    return [
        name.rpartition(".")[2] for name, row in rows.items() if name.rpartition(".")[0] == enum and row["number"] == 0
    ]


@settings(max_examples=150, deadline=None)
@given(_values(ROOT, 3))
def test_any_config_of_the_message_renders_twice_the_same_and_parses_back(config):
    text = config_text(config)
    assert text == config_text(config)
    assert parsed_config(text, "a config") == _without_defaults(config)


@settings(max_examples=150, deadline=None)
@given(_values(ROOT, 3))
def test_what_the_message_holds_has_no_issues(config):
    clean, issues = examine(config)
    assert clean == config
    assert all(issue.kind == "newer" for issue in issues)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.binary(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5) | st.integers(), inner, max_size=3),
    max_leaves=8,
)
NAMED = st.dictionaries(st.sampled_from(sorted(messages()[ROOT])), ANYTHING, max_size=4)


@settings(max_examples=200, deadline=None)
@given(NAMED | ANYTHING)
def test_whatever_somebody_wrote_the_rest_renders(config):
    clean, _ = examine(config)
    parsed_config(config_text(clean), "the rest")


def test_shipped_pipelines_render_twice_the_same_and_parse_back():
    plan = make_plan([assistant(), detect(), transcribe()])
    texts = render_plan(plan)
    assert texts == render_plan(make_plan([transcribe(), detect(), assistant()]))
    configs = {path: text for path, text in texts.items() if path.endswith(".pbtxt")}
    assert {path.split("/")[0] for path in configs} >= {"assistant", "assistant_text", "yolo", "llm"}
    for path, text in configs.items():
        assert text.startswith(HEADER)
        assert parsed_config(text, path)["name"] == path.split("/")[0]


def test_the_gpu_profile_is_a_config_of_its_own_only_where_it_differs():
    texts = render_plan(make_plan([assistant()]))
    assert parsed_config(texts["llm/configs/gpu.pbtxt"], "llm")["instance_group"] == [
        {"count": 1, "kind": "KIND_MODEL"}
    ]
    assert "prompt/configs/gpu.pbtxt" not in texts


def test_an_unknown_field_cannot_be_rendered():
    with pytest.raises(RenderError, match="m: ModelConfig has no field max_batchsize"):
        config_text({"name": "m", "max_batchsize": 8})


def test_a_wrong_value_cannot_be_rendered():
    with pytest.raises(RenderError, match="m, max_batch_size: 'eight' does not fit"):
        config_text({"name": "m", "max_batch_size": "eight"})


def test_text_that_is_no_config_is_refused_with_its_place():
    with pytest.raises(DeclarationError, match='config.pbtxt: 2:1 : .*no field named "max_batchsize"'):
        parsed_config('name: "m"\nmax_batchsize: 8\n', "config.pbtxt")
