"""The smallest ensembles that mix one response and many, and what is said about each."""

from __future__ import annotations

from builder import Pipeline, Step

DECOUPLED = {"model_transaction_policy": {"decoupled": True}}


def _models(model):
    same = model("pre", ["A FP32 [1]"], ["B FP32 [1]"])
    many = model("many", ["A FP32 [1]"], ["B FP32 [1]"], **DECOUPLED)
    join = model("join", ["A FP32 [1]", "B FP32 [1]"], ["C FP32 [1]"])
    return same, many, join


def test_a_step_that_reads_before_and_after_a_decoupled_one(model, told):
    """ENS-14, the join."""
    pre, many, join = _models(model)
    steps = [
        Step(model=pre, input_map="A", output_map="B=pre"),
        Step(model=many, input_map="A=pre", output_map="B=tok"),
        Step(model=join, input_map="A=pre B=tok", output_map="C"),
    ]
    assert told(Pipeline(name="p", inputs="A", outputs="C", steps=steps)) == [
        "TK501 p, step 2 (join): it reads pre (no decoupled step) and tok (decoupled step 1 (many)), "
        "tensors that all descend from the same decoupled step, or all from none, are needed. "
        "Pass pre through many as further inputs and outputs (its first response can carry them), or leave it out."
    ]


def test_an_ensemble_that_returns_before_and_after_a_decoupled_step(model, told):
    """ENS-14, the outputs."""
    pre, many, _ = _models(model)
    steps = [Step(model=pre, input_map="A", output_map="B=pre"), Step(model=many, input_map="A=pre", output_map="B")]
    (line,) = told(Pipeline(name="p", inputs="A", outputs="pre B", steps=steps))
    assert line.startswith("TK502 p, output: it returns pre (no decoupled step) and B (decoupled step 1 (many)), ")
    assert "Pass pre through many" in line


def test_an_input_of_the_ensemble_cannot_meet_a_streamed_tensor_either(model, told):
    _, many, join = _models(model)
    steps = [Step(model=many, input_map="A", output_map="B=tok"), Step(model=join, input_map="A B=tok", output_map="C")]
    (line,) = told(Pipeline(name="p", inputs="A", outputs="C", steps=steps))
    assert line.startswith("TK501 p, step 1 (join): it reads A (no decoupled step) and tok (decoupled step 0 (many))")


def test_two_decoupled_steps_beside_each_other_cannot_be_joined(model, told):
    _, many, join = _models(model)
    again = model("again", ["A FP32 [1]"], ["B FP32 [1]"], **DECOUPLED)
    steps = [
        Step(model=many, input_map="A", output_map="B=t"),
        Step(model=again, input_map="A", output_map="B=u"),
        Step(model=join, input_map="A=t B=u", output_map="C"),
    ]
    (line,) = told(Pipeline(name="p", inputs="A", outputs="C", steps=steps), release="26.07")
    assert line.startswith(
        "TK501 p, step 2 (join): it reads t (decoupled step 0 (many)) and u (decoupled step 1 (again))"
    )
    assert line.endswith("in a step that calls it itself (BLS).")


def test_two_tensors_of_one_decoupled_step_can_be_joined(model, told):
    _, _, join = _models(model)
    many = model("many", ["A FP32 [1]"], ["B FP32 [1]", "C FP32 [1]"], **DECOUPLED)
    steps = [
        Step(model=many, input_map="A", output_map="B=t C=u"),
        Step(model=join, input_map="A=t B=u", output_map="C"),
    ]
    assert told(Pipeline(name="p", inputs="A", outputs="C", steps=steps)) == []


def test_two_decoupled_steps_in_a_row_are_fine(model, told):
    _, many, _ = _models(model)
    again = model("again", ["A FP32 [1]"], ["B FP32 [1]"], **DECOUPLED)
    steps = [Step(model=many, input_map="A", output_map="B=t"), Step(model=again, input_map="A=t", output_map="B")]
    assert told(Pipeline(name="p", inputs="A", outputs="B", steps=steps)) == []


def test_the_rewrite_that_is_offered_has_no_findings(model, told):
    pre, _, _ = _models(model)
    many = model("many", ["A FP32 [1]", "pre? FP32 [1]"], ["B FP32 [1]", "pre FP32 [1]"], **DECOUPLED)
    steps = [
        Step(model=pre, input_map="A", output_map="B=early"),
        Step(model=many, input_map="A=early pre=early", output_map="B pre"),
    ]
    assert told(Pipeline(name="p", inputs="A", outputs="pre B", steps=steps)) == []


def test_optional_input_into_one_that_is_needed(told_of_configs):
    one = {"name": "X", "data_type": "TYPE_FP32", "dims": [1]}
    model = {"name": "m", "backend": "python", "input": [one], "output": [{**one, "name": "Y"}]}
    step = {"model_name": "m", "model_version": -1, "input_map": {"X": "X"}, "output_map": {"Y": "Y"}}
    ensemble = {"name": "e", "platform": "ensemble", "ensemble_scheduling": {"step": [step]}}
    ensemble |= {"input": [{**one, "optional": True}], "output": [{**one, "name": "Y"}]}
    (line,) = told_of_configs(model, ensemble)
    assert line.startswith("TK503 e, step 0 (m), input X: X may be left out, and m cannot do without X, ")


def _decoupled_through(policy, told_of_configs, nested=False):
    """What is said of the ensemble `e`, of which step `many` is decoupled and whose file has this policy."""
    one = {"data_type": "TYPE_FP32", "dims": [1]}
    ends = {"input": [{"name": "X", **one}], "output": [{"name": "Y", **one}]}

    def over(name, *models, **more):
        steps = [
            {
                "model_name": model,
                "model_version": -1,
                "input_map": {"X": f"t{index}" if index else "X"},
                "output_map": {"Y": f"t{index + 1}" if index + 1 < len(models) else "Y"},
            }
            for index, model in enumerate(models)
        ]
        return {"name": name, "platform": "ensemble", **ends, "ensemble_scheduling": {"step": steps}, **more}

    models = [{"name": "pre", "backend": "python", **ends}, {"name": "many", "backend": "python", **ends, **DECOUPLED}]
    inner = [over("inner", "many", **DECOUPLED)] if nested else []
    return told_of_configs(*models, *inner, over("e", "pre", "inner" if nested else "many", "pre", **policy))


def test_an_ensemble_that_is_decoupled_through_a_step_and_does_not_say_so(told_of_configs):
    """ENS-15."""
    assert _decoupled_through({}, told_of_configs) == [
        "TK504 e, step 1 (many): e is decoupled because of step 1 (many), callers that take several responses are "
        "needed, a plain infer is refused. Call it by gRPC streaming, or by generate and generate_stream over HTTP; "
        "write model_transaction_policy { decoupled: true } here, so that readers know."
    ]


def test_a_decoupled_ensemble_makes_the_one_around_it_decoupled(told_of_configs):
    """ENS-15."""
    (line,) = _decoupled_through({}, told_of_configs, nested=True)
    assert line.startswith("TK504 e, step 1 (inner): e is decoupled because of step 1 (inner), ")


def test_an_ensemble_that_says_that_it_is_decoupled(told_of_configs, told, model):
    """ENS-15: what `tritonkit build` writes says so by itself."""
    assert _decoupled_through(DECOUPLED, told_of_configs) == []
    _, many, _ = _models(model)
    assert (
        told(Pipeline(name="p", inputs="A", outputs="B", steps=[Step(model=many, input_map="A", output_map="B")])) == []
    )
