"""The picture of a pipeline is well formed, whatever its names are."""

from __future__ import annotations

from xml.etree import ElementTree

from builder import Pipeline, Step, check_pipelines
from builder.draw import draw_pipeline
from builder.handover import Sizes, edges_of
from builder.plan import make_plan


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


GPU = [{"kind": "KIND_GPU", "count": 1, "gpus": [0]}]


def _two(model, left, right, reads="B FP32 [300000]"):
    """Two steps whose edge is `t`, and its hand-over."""
    first = model("first", ["A FP32 [300000]"], ["B FP32 [300000]"], **left)
    last = model("last", [reads], ["C STRING [1]"], **right)
    steps = [Step(model=first, input_map="A", output_map="B=t"), Step(model=last, input_map="B=t", output_map="C")]
    pipeline = Pipeline(name="p", inputs="A", outputs="C", steps=steps)
    catalog = make_plan([pipeline]).catalog("gpu")
    return pipeline, edges_of(catalog.entries["p"], catalog, Sizes())


def test_lines_have_the_colour_of_what_becomes_of_the_tensor_and_the_width_of_its_bytes(model):
    ort = {"backend": "onnxruntime", "instance_group": GPU}
    pipeline, edges = _two(model, ort, {"instance_group": [{"kind": "KIND_CPU", "count": 2}]})
    svg = draw_pipeline(pipeline, edges=edges)
    root = ElementTree.fromstring(svg)
    paths = list(root.iter("{http://www.w3.org/2000/svg}path"))
    assert [(one.get("class"), one.get("stroke-width")) for one in paths] == [
        ("line fair", "4.0"),
        ("line", "1.0"),
        ("line bad", "4.0"),
    ]
    assert "t: 1,200,000 bytes, host bounce: last runs on the host" in svg
    assert "fp32 [300000], 1.1 MiB" in svg
    assert "onnxruntime, GPU 0" in svg and "python, 2 instances" in svg


def test_findings_are_pinned_to_their_step_by_number(model):
    pipeline, _ = _two(model, {}, {}, reads="B INT32 [4]")
    findings = check_pipelines([pipeline])[1]
    root = ElementTree.fromstring(draw_pipeline(pipeline, findings=findings))
    texts = [one for one in root.iter("{http://www.w3.org/2000/svg}text") if one.get("class") == "number"]
    places = {one.text: float(one.get("x")) for one in texts}
    assert list(places) == [str(number) for number in range(1, len(findings) + 1)]
    box = next(one for one in root.iter("{http://www.w3.org/2000/svg}text") if one.text == "last")
    about_last = next(number for number, one in enumerate(findings, 1) if one.step == 1)
    assert 0 < places[str(about_last)] - float(box.get("x")) < 176
