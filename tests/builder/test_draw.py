"""The picture of a pipeline is well formed, whatever its names are."""

from __future__ import annotations

from xml.etree import ElementTree

from builder import Pipeline, Step
from builder.draw import draw_pipeline


def _lines(svg):
    return [path.get("class") for path in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}path")]


def test_every_edge_has_a_line_and_streamed_ones_are_marked(model):
    many = model("a<b>&c", ["A FP32 [1]"], ["B FP32 [1]"], model_transaction_policy={"decoupled": True})
    last = model("last", ["B FP32 [1]", "M? STRING [1]"], ["C FP32 [1]"])
    steps = [Step(model=many, input_map="A", output_map="B=t"), Step(model=last, input_map="B=t", output_map="C")]
    svg = draw_pipeline(Pipeline(name="p", inputs="A", outputs="C", steps=steps))
    assert _lines(svg) == ["line", "line streamed", "line streamed"]
    assert "a&lt;b&gt;&amp;c" in svg


def test_a_broken_pipeline_can_be_drawn_too(model):
    join = model("join", ["A FP32 [1]", "B FP32 [1]"], ["C FP32 [1]"])
    steps = [
        Step(model=join, input_map="A B=loop", output_map="C=mid"),
        Step(model=join, input_map="A=mid B=mid", output_map="C=loop X=y"),
    ]
    ElementTree.fromstring(draw_pipeline(Pipeline(name="p", inputs="A", outputs="gone", steps=steps)))
