"""Sums that follow by hand, what is refused, and what would fit instead."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from builder import Pipeline, Step
from builder.errors import DeclarationError
from builder.memory.applied import applied
from builder.memory.devices import GIB, MIB, Gpu, bytes_text, detected, gpus, known_gpus, parse_bytes
from builder.memory.engine import known_networks
from builder.memory.planning import Ask, plan_memory
from builder.memory.settings import vllm_version
from builder.model import Model
from builder.pipelines.assistant import assistant
from builder.plan import make_plan

LLAMA = "meta-llama/Meta-Llama-3-8B-Instruct"
NEW = (0, 24, 0)
ON_GPU = [{"kind": "KIND_GPU", "count": 1, "gpus": [0]}]


def _llm(model="llm", name=LLAMA, **arguments):
    config = {
        "backend": "python",
        "input": ["X STRING [1]"],
        "output": ["Y STRING [1]"],
        "instance_group": [{"kind": "KIND_MODEL", "count": 1}],
        "model_transaction_policy": {"decoupled": True},
    }
    return Model(name=model, config=config, texts={"model.json": json.dumps({"model": name, **arguments})})


def _planned(*models, gpu="24GiB", version=NEW, tmp_path, **more):
    steps = [Step(model=one, input_map=f"X=t{index}", output_map=f"Y=t{index + 1}") for index, one in enumerate(models)]
    plan = make_plan([Pipeline(name="p", inputs="t0", outputs=f"t{len(models)}", steps=steps)], "26.07")
    return plan_memory(plan, Ask(devices=gpus(gpu), version=version, **more), tmp_path)


def _python(name, tensor="STRING [1]", **config):
    declared = {"backend": "python", "input": [f"X {tensor}"], "output": [f"Y {tensor}"], **config}
    return Model(name=name, config=declared)


def _sum(memory, owner, kind):
    return sum(one.bytes for one in memory.accounts[0].parts if one.owner == owner and one.kind == kind)


def test_the_cache_gets_what_is_left_and_the_sum_is_the_usable_memory(tmp_path):
    memory = _planned(_llm(enforce_eager=True), tmp_path=tmp_path)
    account = memory.accounts[0]
    assert memory.fits
    assert _sum(memory, "llm", "weights") == 2 * 8_030_261_248
    assert account.used <= account.usable < account.used + 2 * MIB
    cache = memory.caches[0]
    assert cache.blocks == cache.bytes // (16 * 131_072)
    assert cache.sequences[8192] == pytest.approx(cache.bytes / (8192 * 131_072), rel=0.01)


def test_processes_on_the_gpu_have_a_context_each_and_those_on_the_host_none(tmp_path):
    """DEP-10: pre and post steps on the host create no context."""
    many = [_python(f"on{index}", instance_group=ON_GPU) for index in range(6)]
    host = _python("host", instance_group=[{"kind": "KIND_CPU", "count": 4}])
    memory = _planned(*many, host, gpu="L4", tmp_path=tmp_path)
    contexts = [one.owner for one in memory.accounts[0].parts if one.kind == "context"]
    assert contexts == ["tritonserver", *(f"on{index}" for index in range(6))]
    assert sum(one.bytes for one in memory.accounts[0].parts if one.kind == "context") == 7 * 450 * MIB
    assert "on0 has an instance on a GPU; what it takes there is in no file: give --reserve on0=SIZE" in memory.notes


def test_models_that_name_no_instances_have_a_process_on_every_gpu(tmp_path):
    """DEP-10: six Python models without instance_group on two GPUs, and the server's own context on each."""
    memory = _planned(*(_python(f"m{index}") for index in range(6)), gpu="2xL4", tmp_path=tmp_path)
    for account in memory.accounts:
        contexts = {one.owner: one.bytes for one in account.parts if one.kind == "context"}
        assert contexts == dict.fromkeys(["tritonserver", *(f"m{index}" for index in range(6))], 450 * MIB)


def test_a_group_without_kind_has_its_count_on_every_gpu_or_on_those_it_names(tmp_path):
    """DEP-10."""
    every, second = {"count": 2}, {"count": 1, "gpus": [1]}
    models = [_python("every", instance_group=[every]), _python("second", instance_group=[second])]
    first, last = _planned(*models, gpu="2xL4", tmp_path=tmp_path).accounts
    sizes = [{one.owner: one.bytes for one in account.parts if one.kind == "context"} for account in (first, last)]
    assert sizes[0] == {"tritonserver": 450 * MIB, "every": 900 * MIB}
    assert sizes[1] == {**sizes[0], "second": 450 * MIB}


def test_two_instances_have_two_contexts_and_reserved_memory_counts(tmp_path):
    two = _python("two", instance_group=[{"kind": "KIND_GPU", "count": 2, "gpus": [0]}])
    memory = _planned(two, gpu="L4", tmp_path=tmp_path, reserved={"two": 3 * GIB})
    assert (_sum(memory, "two", "context"), _sum(memory, "two", "reserved")) == (2 * 450 * MIB, 3 * GIB)
    (told,) = [one for one in memory.settings if one.where == "two"]
    each = bytes_text(450 * MIB + 3 * GIB // 2)
    assert (told.name, told.value, told.why) == ("instances on GPU 0", "2", f"each takes {each} there")


def test_whisper_yolo_and_vllm_with_nine_tenths_of_the_gpu_do_not_fit(tmp_path):
    """VLL-01: 21.6 GiB for vLLM and 5.5 GiB for others on 24 GiB; here the cache is given, too large."""
    others = [_python(name, instance_group=ON_GPU) for name in ("whisper", "yolo")]
    memory = _planned(
        *others,
        _llm(kv_cache_memory_bytes=4 * GIB, enforce_eager=True),
        reserved={"whisper": 4 * GIB, "yolo": 3 * GIB // 2},
        tmp_path=tmp_path,
    )
    assert not memory.fits
    assert memory.refusals[0].startswith("GPU 0 (24GiB): tritonserver 564.0 MiB + llm 20.91 GiB + whisper 4.49 GiB")
    assert "= 27.93 GiB" in memory.refusals[0] and "of 22.80 GiB (95 % of 24.00 GiB), " in memory.refusals[0]
    changes = [way.change for way in memory.ways]
    assert any("4 bits" in change for change in changes)
    assert any(change.startswith("a larger GPU: --gpu ") for change in changes)
    assert all(way.fills <= way.of * 95 / 100 for way in memory.ways)
    assert memory.settings == ()


def test_a_cache_below_one_sequence_is_refused_with_both_numbers(tmp_path):
    memory = _planned(_llm(kv_cache_memory_bytes=GIB // 2), gpu="H100", tmp_path=tmp_path)
    assert memory.refusals == (
        "llm: kv_cache_memory_bytes is 512.0 MiB, one sequence of 8,192 tokens takes 1.00 GiB. "
        "Give it more, or a smaller max_model_len",
    )
    assert memory.ways[0].change == "leave kv_cache_memory_bytes out: the cache gets what is left"


def test_what_would_fit_keeps_to_what_was_asked_where_it_can(tmp_path):
    memory = _planned(_llm(enforce_eager=True), gpu="16GiB", tmp_path=tmp_path)
    assert [way.change for way in memory.ways] == [
        "a checkpoint of the same network in 4 bits (AWQ, GPTQ)",
        "tensor parallelism over 2 GPUs: --gpu 2x16GiB, tensor_parallel_size 2",
        "a larger GPU: --gpu A10G",
    ]


def test_tensor_parallelism_halves_weights_and_cache_on_each_gpu(tmp_path):
    one = _planned(_llm(), gpu="H100", tmp_path=tmp_path)
    two = _planned(_llm(tensor_parallel_size=2), gpu="2xH100", tmp_path=tmp_path)
    assert len(two.accounts) == 2
    assert _sum(two, "llm", "weights") == pytest.approx(_sum(one, "llm", "weights") / 2, rel=0.01)
    assert two.caches[0].bytes_per_token * 2 == one.caches[0].bytes_per_token
    with pytest.raises(DeclarationError, match="llm: it needs 2 GPUs, 1 is given"):
        _planned(_llm(tensor_parallel_size=2), gpu="H100", tmp_path=tmp_path)


@pytest.mark.parametrize(
    ("version", "names", "others"),
    [
        ("0.24.0+092c4842.nv26.7", ["kv_cache_memory_bytes", "gpu_memory_utilization"], False),
        ("0.10.2", ["kv_cache_memory_bytes", "gpu_memory_utilization"], False),
        ("0.9.2", ["gpu_memory_utilization"], False),
        ("0.8.4+dc1a3e10", ["gpu_memory_utilization"], True),
    ],
)
def test_the_settings_are_those_that_the_version_of_vllm_has(version, names, others, tmp_path):
    clip = _python("clip", instance_group=ON_GPU)
    memory = _planned(
        clip, _llm(max_model_len=4096), gpu="A100-80", version=vllm_version(version), reserved={"clip": 8 * GIB},
        tmp_path=tmp_path,
    )  # fmt: skip
    set_ = {one.name: one.value for one in memory.settings if one.where == "llm"}
    assert list(set_) == names
    account = memory.accounts[0]
    own = sum(one.bytes for one in account.parts if one.owner == "llm")
    counted = account.used if others else own
    share = float(set_["gpu_memory_utilization"])
    assert counted / account.gpu.memory_bytes <= share < counted / account.gpu.memory_bytes + 0.011


def test_shared_memory_and_pools_follow_from_the_edges(tmp_path):
    """PYB-02: two processes that pass 8 pictures of 640 x 640; docker's 64 MiB would not do."""
    pre = Model(
        name="pre",
        config={"backend": "python", "input": ["X FP32 [3,640,640]"], "output": ["Y FP32 [3,640,640]"],
                "instance_group": [{"kind": "KIND_CPU", "count": 2}]},
    )  # fmt: skip
    memory = _planned(pre, tmp_path=tmp_path, concurrency=64)
    size = next(one for one in memory.settings if one.name == "--shm-size").value
    picture = 3 * 640 * 640 * 4
    assert int(size.removesuffix("m")) * MIB == pytest.approx(2 * (64 * 2 * picture + MIB) * 1.25, rel=0.01)
    few = _planned(pre, tmp_path=tmp_path, concurrency=1)
    assert next(one for one in few.settings if one.name == "--shm-size").value == "1024m"


def test_the_pool_holds_every_edge_on_the_gpu_for_all_requests(tmp_path):
    class Steps:
        big = {"backend": "onnxruntime", "instance_group": ON_GPU, "input": ["X FP32 [4194304]"],
               "output": ["Y FP32 [4194304]"]}  # fmt: skip

    models = [Model(name=name, config=Steps.big) for name in ("a", "b", "c")]
    memory = _planned(*models, gpu="L4", tmp_path=tmp_path, concurrency=8, reserved=dict.fromkeys("abc", GIB))
    pool = next(one for one in memory.settings if one.name == "--cuda-memory-pool-byte-size").value
    assert pool == f"0:{3 * 8 * 16 * MIB * 5 // 4}"
    assert _sum(memory, "tritonserver", "pool") == 3 * 8 * 16 * MIB * 5 // 4


def test_an_unknown_checkpoint_names_what_is_needed(tmp_path):
    with pytest.raises(DeclarationError, match=r"llm: there is no .*config.json, and no published model of the name"):
        _planned(_llm(name="nobody/nothing"), tmp_path=tmp_path)


def test_a_checkpoint_that_is_damaged_or_quantized_in_an_unknown_way_says_so(tmp_path):
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(DeclarationError, match="config.json cannot be read as a config .*Fetch the checkpoint again"):
        _planned(_llm(name=str(tmp_path)), tmp_path=tmp_path)
    config = {**known_networks()[LLAMA], "quantization_config": {"quant_method": "aqlm"}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    memory = _planned(_llm(name=str(tmp_path), enforce_eager=True), tmp_path=tmp_path)
    assert "llm: how small aqlm makes weights is not known here; bfloat16 counts" in memory.notes
    assert _sum(memory, "llm", "weights") == 2 * 8_030_261_248


def test_gpus_by_name_by_number_by_size_and_detected():
    assert gpus("2xA100-80, l4") == (*(known_gpus()["A100-80"],) * 2, known_gpus()["L4"])
    assert gpus("3090")[0].name == gpus("RTX3090")[0].name == gpus("NVIDIA GeForce RTX 3090")[0].name == "RTX 3090"
    assert gpus("24GiB") == (Gpu(name="24GiB", memory_bytes=24 * GIB),)
    assert [one.name for one in detected("NVIDIA H200, 143771\nNVIDIA Strange, 10000\n")] == [
        "NVIDIA H200",
        "NVIDIA Strange",
    ]
    assert detected("NVIDIA-SMI has failed") == ()
    with pytest.raises(DeclarationError, match="GPU 'H10': no GPU of this name is known.*did you mean H100?"):
        gpus("H10")


def test_the_table_is_in_order_and_below_what_is_on_the_box():
    boxes = {"L4": 24, "A100-40": 40, "A100-80": 80, "H100": 80, "RTX 3090": 24, "T4": 16, "H200": 141, "B200": 192}
    sizes = [one.memory_bytes for one in known_gpus().values()]
    assert sizes == sorted(sizes)
    for name, gigabytes in boxes.items():
        assert 0.9 * gigabytes * 10**9 < known_gpus()[name].memory_bytes < gigabytes * GIB


def test_sizes_as_people_write_them():
    assert [parse_bytes(text) for text in ("80GiB", "24 GB", "512m", "1.5GiB", "7", "x")] == [
        80 * GIB, 24 * 10**9, 512 * MIB, 3 * GIB // 2, None, None,
    ]  # fmt: skip
    assert [bytes_text(size) for size in (900, 2048, 3 * MIB, 5 * GIB)] == ["900 B", "2.0 KiB", "3.0 MiB", "5.00 GiB"]


def test_every_account_is_ordered_by_kind(tmp_path):
    memory = _planned(_llm(), gpu="H100", tmp_path=tmp_path)
    assert [one.kind for one in memory.accounts[0].parts] == [
        "context", "context", "pool", "weights", "activations", "graphs", "cache",
    ]  # fmt: skip
    assert replace(memory, refusals=("x",)).fits is False


def test_a_gpu_without_bfloat16_gets_a_type_that_it_has(tmp_path):
    old = _planned(_llm(name="Qwen/Qwen2.5-0.5B-Instruct", max_model_len=2048), gpu="T4", tmp_path=tmp_path)
    new = _planned(_llm(name="Qwen/Qwen2.5-0.5B-Instruct", max_model_len=2048), gpu="L4", tmp_path=tmp_path)
    assert [one.value for one in old.settings if one.name == "dtype"] == ["half"]
    assert [one.value for one in new.settings if one.name == "dtype"] == []


def test_the_number_of_requests_planned_for_stands_in_the_config_for_callers_to_read(tmp_path):
    plan = make_plan([assistant(llm="Qwen/Qwen3-8B")], "26.07")
    memory = plan_memory(plan, Ask(devices=gpus("H100"), version=(0, 24)), tmp_path)
    (llm,) = [one for one in applied(plan, memory, {"max_num_seqs": 48}).models if one.name == "llm"]
    assert llm.config_for("gpu")["parameters"]["max_num_seqs"]["string_value"] == "48"
    assert json.loads(llm.texts["model.json"])["max_num_seqs"] == 48
