"""Darknet's .cfg text."""

import pytest

from weights.errors import ExportError
from weights.yolo.darknet_cfg import read_cfg

TEXT = """
[net]
# a comment
width=416
height = 320   # behind a value

[convolutional]
filters=16
; another comment
[yolo]
mask = 0,1
anchors = 10,14,  23,27.5
"""


def test_sections_come_in_order_with_their_values() -> None:
    sections = read_cfg(TEXT)
    assert [(section.kind, section.line) for section in sections] == [("net", 2), ("convolutional", 7), ("yolo", 10)]
    assert sections[0].integer("width", 0) == 416
    assert sections[0].integer("height", 0) == 320
    assert sections[0].integer("channels", 3) == 3
    assert sections[2].integers("mask") == (0, 1)
    assert sections[2].reals("anchors") == (10, 14, 23, 27.5)
    assert sections[2].reals("absent") == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[net]\nwidth", "cfg line 2: 'width'. A [section] or key=value is expected there."),
        ("width=3\n[net]", "cfg line 1: 'width=3'. A [section] or key=value is expected there."),
        ("", "cfg: it does not begin with [net]. A Darknet .cfg file is expected."),
        ("[yolo]", "cfg: it does not begin with [net]. A Darknet .cfg file is expected."),
    ],
)
def test_what_is_no_cfg_is_refused_by_its_line(text: str, message: str) -> None:
    with pytest.raises(ExportError) as refused:
        read_cfg(text)
    assert str(refused.value) == message


def test_a_value_that_is_no_number_is_named_with_its_section() -> None:
    net, yolo = read_cfg("[net]\nwidth=wide\n[yolo]\nanchors=1,x")
    with pytest.raises(ExportError, match=r"^cfg line 1, \[net\]: width is 'wide'; a number is expected\.$"):
        net.integer("width", 1)
    with pytest.raises(ExportError, match=r"^cfg line 3, \[yolo\]: anchors is '1,x'; numbers with commas"):
        yolo.reals("anchors")
