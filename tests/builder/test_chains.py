"""A pipeline once for each GPU."""

from __future__ import annotations

import json

import pytest

from builder import DeclarationError, check_pipelines
from builder.chains import chain, on_gpus, placed
from builder.memory.devices import gpus
from builder.memory.planning import Ask, plan_memory
from builder.pipelines.assistant import assistant
from builder.pipelines.detect import detect
from builder.plan import make_plan


def _on(plan, name):
    return [one.get("gpus") for one in plan.catalog("gpu").entries[name].config.get("instance_group", ())]


def test_each_gpu_has_its_own_copies_and_the_rest_is_shared():
    plan, findings = check_pipelines(on_gpus([assistant()], 2), "26.07-vllm+py3")
    assert findings == ()
    names = [one.name for one in plan.models]
    assert [one for one in names if one.endswith("_gpu1")] == [
        "llm_gpu1", "whisper_decoder_gpu1", "whisper_encoder_gpu1", "yolo_gpu1", "yolo_postprocess_gpu1",
        "yolo_preprocess_gpu1",
    ]  # fmt: skip
    assert names.count("prompt") == names.count("whisper_features") == 1
    assert _on(plan, "yolo") == _on(plan, "llm") == [[0]]
    assert _on(plan, "yolo_gpu1") == _on(plan, "llm_gpu1") == [[1]]
    steps = {step["model_name"] for step in plan.catalog("gpu").entries["assistant_gpu1_image"].ensemble_steps()}
    assert steps == {"yolo_preprocess_gpu1", "yolo_gpu1", "yolo_postprocess_gpu1", "prompt", "llm_gpu1"}


def test_a_copy_asks_the_copies_of_the_models_that_it_asks():
    models = {one.name: one for one in chain(assistant(), 1).models()}
    parameters = models["whisper_decoder_gpu1"].config["parameters"]
    assert parameters["encoder"]["string_value"] == "whisper_encoder_gpu1"


def test_on_the_cpu_copies_are_as_the_originals():
    original = {one.name: one for one in detect().models()}["yolo"]
    copy = {one.name: one for one in chain(detect(), 3).models()}["yolo_gpu3"]
    assert {**copy.config_for("cpu"), "name": "yolo"} == original.config_for("cpu")


def test_one_gpu_changes_nothing():
    pipeline = detect()
    assert on_gpus([pipeline], 1) == (pipeline,)


def test_a_language_model_that_spans_gpus_is_refused():
    pipeline = assistant()
    llm = next(one.model for one in pipeline.steps if one.model.name == "llm")
    object.__setattr__(llm, "texts", {"model.json": json.dumps({"model": "x", "tensor_parallel_size": 2})})
    with pytest.raises(DeclarationError, match="llm: it spans 2 GPUs"):
        chain(pipeline, 1)


def test_a_language_model_has_gpus_to_itself_where_the_others_are_put_elsewhere(tmp_path):
    pipelines = placed([assistant(llm="meta-llama/Meta-Llama-3-70B-Instruct")], others=2)
    plan, findings = check_pipelines(pipelines, "26.07-vllm+py3")
    assert findings == ()
    assert _on(plan, "yolo") == _on(plan, "whisper_decoder") == [[2]]
    assert plan.catalog("gpu").entries["llm"].config["instance_group"][0]["kind"] == "KIND_MODEL"
    ask = Ask(devices=gpus("3xH100"), version=(0, 24), arguments={"tensor_parallel_size": 2})
    memory = plan_memory(plan, ask, tmp_path)
    assert memory.fits
    owners = [{one.owner for one in account.parts} - {"tritonserver"} for account in memory.accounts]
    assert owners[:2] == [{"llm"}, {"llm"}] and "llm" not in owners[2] and "whisper_decoder" in owners[2]


@pytest.mark.parametrize(
    ("pipeline", "ways", "told"),
    [
        (assistant, {"others": 1, "chains": 2}, "--chains 2 puts a language model on each GPU"),
        (detect, {"others": 1}, "detect: it has no language model"),
        (assistant, {"others": 0}, "llm: it is on GPUs 0 to 0; another GPU is needed"),
    ],
)
def test_what_cannot_be_split_between_gpus_is_refused(pipeline, ways, told):
    with pytest.raises(DeclarationError, match=told):
        placed([pipeline()], **ways)


def test_an_engine_on_several_gpus_cannot_be_in_a_chain(tmp_path):
    plan = make_plan(on_gpus([assistant()], 2), "26.07")
    ask = Ask(devices=gpus("4xH100"), version=(0, 24), arguments={"tensor_parallel_size": 2})
    with pytest.raises(DeclarationError, match="llm: it spans 2 GPUs, and its instance of KIND_GPU sees one"):
        plan_memory(plan, ask, tmp_path)


def test_every_gpu_is_planned_with_what_is_on_it(tmp_path):
    plan = make_plan(on_gpus([assistant(llm="Qwen/Qwen3-8B")], 2), "26.07")
    memory = plan_memory(plan, Ask(devices=gpus("2xH100"), version=(0, 24)), tmp_path)
    assert memory.fits
    owners = [{one.owner for one in account.parts if one.kind == "cache"} for account in memory.accounts]
    assert owners == [{"llm"}, {"llm_gpu1"}]
    assert memory.accounts[0].used == memory.accounts[1].used
    with pytest.raises(DeclarationError, match="needs 2 GPUs, 1 is given"):
        plan_memory(plan, Ask(devices=gpus("H100"), version=(0, 24)), tmp_path)


def test_two_engines_on_one_gpu_share_what_is_left(tmp_path):
    two = [assistant(llm="Qwen/Qwen3-8B"), chain(assistant(llm="Qwen/Qwen3-8B"), 1)]
    plan = make_plan(two, "26.07")
    for model in plan.models:
        groups = [{"kind": "KIND_GPU", "count": 1, "gpus": [0]}]
        if model.name == "llm_gpu1":
            object.__setattr__(model, "profiles", {"gpu": {"instance_group": groups}})
    memory = plan_memory(plan, Ask(devices=gpus("H100,H100"), version=(0, 24)), tmp_path)
    assert memory.fits, memory.refusals
    first, second = (one.bytes for one in memory.caches)
    assert first == pytest.approx(second, rel=0.01)
    shares = [float(one.value) for one in memory.settings if one.name == "gpu_memory_utilization"]
    assert len(shares) == 2 and sum(shares) <= 1
