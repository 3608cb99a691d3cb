"""Plans: types and dims of an ensemble, order of steps, the ensembles derived from optional inputs."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builder import Pipeline, Step, make_plan
from builder.model import thaw
from builder.pipelines.assistant import assistant
from builder.pipelines.detect import detect
from builder.pipelines.transcribe import transcribe
from builder.render import render_plan


def _config(plan, name):
    return next(thaw(ensemble.config) for ensemble in plan.ensembles if ensemble.name == name)


def _names(config, side):
    return [one["name"] + ("?" if one.get("optional") else "") for one in config[side]]


def test_inputs_take_type_and_dims_from_their_users_and_outputs_from_their_maker(model):
    batching = {"max_batch_size": 8, "dynamic_batching": {"max_queue_delay_microseconds": 1}}
    one = model("one", ["A FP32 [3,-1]"], ["B INT32 [2]"], **batching)
    plan = make_plan([Pipeline(name="p", inputs="A", outputs="B", steps=[_same(one)])])
    assert _config(plan, "p")["input"] == [{"name": "A", "data_type": "TYPE_FP32", "dims": [-1, 3, -1]}]
    assert _config(plan, "p")["output"] == [{"name": "B", "data_type": "TYPE_INT32", "dims": [-1, 2]}]


def test_a_batching_ensemble_has_dims_without_the_batch(model):
    batching = {"max_batch_size": 8, "dynamic_batching": {"max_queue_delay_microseconds": 1}}
    one = model("one", ["A FP32 [3]"], ["B FP32 [2]"], **batching)
    plan = make_plan([Pipeline(name="p", inputs="A", outputs="B", steps=[_same(one)], max_batch_size=8)])
    assert _config(plan, "p")["input"][0]["dims"] == [3]


def test_a_size_that_varies_is_taken_from_the_user_that_knows_it(model):
    one = model("one", ["A FP32 [-1,4]"], ["B FP32 [1]"])
    two = model("two", ["A FP32 [3,-1]"], ["C FP32 [1]"])
    steps = [_same(one), Step(model=two, input_map="A", output_map="C")]
    assert _config(make_plan([Pipeline(name="p", inputs="A", outputs="B C", steps=steps)]), "p")["input"][0][
        "dims"
    ] == [3, 4]


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_order_of_declaration_does_not_change_the_plan(order, model):
    models = [model(name, ["A FP32 [1]"], ["B FP32 [1]"]) for name in ("first", "second", "third")]
    steps = [
        Step(model=models[0], input_map="A", output_map="B=one"),
        Step(model=models[1], input_map="A=one", output_map="B=two"),
        Step(model=models[2], input_map="A=two", output_map="B"),
    ]
    plan = make_plan([Pipeline(name="p", inputs="A", outputs="B", steps=[steps[index] for index in order])])
    names = [step["model_name"] for step in _config(plan, "p")["ensemble_scheduling"]["step"]]
    assert names == ["first", "second", "third"]


@st.composite
def shuffled_steps(draw):
    """Steps of a random acyclic pipeline as (name, what each reads), and the same in another order."""
    size = draw(st.integers(2, 7))
    steps = []
    for number in range(size):
        earlier = ["SENT", *(f"t{before}" for before in range(number))]
        read = draw(st.lists(st.sampled_from(earlier), min_size=1, max_size=3, unique=True))
        steps.append((number, draw(st.sampled_from("abc")), read))
    return steps, draw(st.permutations(steps))


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(shuffled_steps())
def test_any_order_of_steps_gives_the_same_plan(model, both):
    models = {
        (name, count): model(f"{name}{count}", [f"I{index} FP32 [1]" for index in range(count)], ["O FP32 [1]"])
        for name in "abc"
        for count in (1, 2, 3)
    }
    used = {name for _, _, read in both[0] for name in read}
    outputs = [f"t{number}" for number, _, _ in both[0] if f"t{number}" not in used]

    def plan(steps):
        declared = [
            Step(
                model=models[name, len(read)],
                input_map={f"I{index}": tensor for index, tensor in enumerate(read)},
                output_map={"O": f"t{number}"},
            )
            for number, name, read in steps
        ]
        return make_plan([Pipeline(name="p", inputs="SENT", outputs=outputs, steps=declared)])

    first, second = (plan(steps) for steps in both)
    assert render_plan(first) == render_plan(second)


def test_order_of_pipelines_does_not_change_the_plan():
    plans = [make_plan(list(order)) for order in permutations([assistant(), detect(), transcribe()])]
    assert all(plan.ensembles == plans[0].ensembles and plan.models == plans[0].models for plan in plans)


def test_an_optional_input_that_everyone_can_miss_stays_one_ensemble(model):
    one = model("one", ["A FP32 [1]", "MODE? STRING [1]"], ["B FP32 [1]"])
    step = Step(model=one, input_map="A MODE", output_map="B")
    plan = make_plan([Pipeline(name="p", inputs="A MODE?", outputs="B", steps=[step])])
    assert [ensemble.name for ensemble in plan.ensembles] == ["p"]
    assert _names(_config(plan, "p"), "input") == ["A", "MODE?"]


def test_an_input_that_is_always_sent_stays_needed_even_if_its_users_can_miss_it(model):
    one = model("one", ["A? FP32 [1]"], ["B FP32 [1]"])
    plan = make_plan([Pipeline(name="p", inputs="A", outputs="B", steps=[_same(one)])])
    assert _names(_config(plan, "p"), "input") == ["A"]


def test_the_assistant_is_four_ensembles():
    plan = make_plan([assistant()])
    found = {
        one.name: (one.left_out, _names(one.config, "input"), _names(one.config, "output")) for one in plan.ensembles
    }
    streamed = ["TEXT", "FINISH_REASON", "PROMPT_TOKENS", "COMPLETION_TOKENS"]
    speech, sight = ["LANGUAGE?", "TASK?", "MODE?"], ["CONFIDENCE?", "IOU?"]
    assert found == {
        "assistant": (
            (),
            ["AUDIO", "IMAGE", "QUESTION", "SAMPLING_PARAMETERS?", *speech, *sight],
            ["TRANSCRIPT", "DETECTIONS", *streamed],
        ),
        "assistant_audio": (
            ("IMAGE",),
            ["AUDIO", "QUESTION", "SAMPLING_PARAMETERS?", *speech],
            ["TRANSCRIPT", *streamed],
        ),
        "assistant_image": (
            ("AUDIO",),
            ["IMAGE", "QUESTION", "SAMPLING_PARAMETERS?", *sight],
            ["DETECTIONS", *streamed],
        ),
        "assistant_text": (("AUDIO", "IMAGE"), ["QUESTION", "SAMPLING_PARAMETERS?"], streamed),
    }


def test_a_pruned_ensemble_leaves_out_steps_that_only_fed_the_pruned_one(model):
    helper = model("helper", ["Q FP32 [1]"], ["H FP32 [1]"])
    main = model("main", ["A FP32 [1]", "H FP32 [1]"], ["M FP32 [1]"])
    rest = model("rest", ["Q FP32 [1]", "M? FP32 [1]"], ["R FP32 [1]"])
    steps = [
        Step(model=helper, input_map="Q", output_map="H"),
        Step(model=main, input_map="A H", output_map="M"),
        Step(model=rest, input_map="Q M", output_map="R"),
    ]
    plan = make_plan([Pipeline(name="p", inputs="A? Q", outputs="R", steps=steps)])
    bare = _config(plan, "p_bare")
    assert [step["model_name"] for step in bare["ensemble_scheduling"]["step"]] == ["rest"]
    assert bare["ensemble_scheduling"]["step"][0]["input_map"] == {"Q": "Q"}


def test_two_inputs_of_one_step_derive_no_ensemble_with_only_one_of_them(model):
    pair = model("pair", ["A FP32 [1]", "B FP32 [1]"], ["P FP32 [1]"])
    rest = model("rest", ["Q FP32 [1]", "P? FP32 [1]"], ["R FP32 [1]"])
    steps = [Step(model=pair, input_map="A B", output_map="P"), Step(model=rest, input_map="Q P", output_map="R")]
    plan = make_plan([Pipeline(name="p", inputs="A? B? Q", outputs="R", steps=steps)])
    assert [ensemble.name for ensemble in plan.ensembles] == ["p", "p_bare"]


def test_an_ensemble_with_a_decoupled_step_says_so(model):
    one = model("one", ["A FP32 [1]"], ["B FP32 [1]"], model_transaction_policy={"decoupled": True})
    plan = make_plan([Pipeline(name="p", inputs="A", outputs="B", steps=[_same(one)])])
    assert _config(plan, "p")["model_transaction_policy"] == {"decoupled": True}


def test_steps_keep_the_numbers_they_were_declared_with(model):
    models = {name: model(name, ["A FP32 [1]"], ["B FP32 [1]"]) for name in ("late", "early")}
    steps = [
        Step(model=models["late"], input_map="A=t", output_map="B"),
        Step(model=models["early"], input_map="A", output_map="B=t"),
    ]
    plan = make_plan([Pipeline(name="p", inputs="A", outputs="B", steps=steps)])
    assert plan.ensembles[0].steps == (1, 0)


def _same(model):
    return Step(model=model, input_map="A", output_map="B")
