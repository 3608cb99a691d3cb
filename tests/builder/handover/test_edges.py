"""What is said of edges between every kind of ends, and of the server's log about them."""

from __future__ import annotations

import pytest

from builder import Catalog, Pipeline, Step, entry, target
from builder.handover import edges_of, totals
from builder.handover.sizes import Sizes, sizes_of
from builder.handover.verify import compare, read_placement
from builder.pipelines.assistant import assistant
from builder.plan import make_plan

GPU = [{"kind": "KIND_GPU", "count": 1, "gpus": [0]}]
CPU = [{"kind": "KIND_CPU", "count": 1}]
OPEN = {"FORCE_CPU_ONLY_INPUT_TENSORS": {"string_value": "no"}}


def _chain(*configs, data_type="TYPE_FP32", dims=(1000,)):
    """A catalog of models one after another, and the ensemble over them."""
    tensor = {"data_type": data_type, "dims": list(dims)}
    entries = {}
    for index, config in enumerate(configs):
        name = f"m{index}"
        declared = {"input": [{"name": "X", **tensor}], "output": [{"name": "Y", **tensor}], **config}
        entries[name] = entry(name, {"name": name, **declared})
    steps = [
        {"model_name": f"m{index}", "input_map": {"X": f"t{index}"}, "output_map": {"Y": f"t{index + 1}"}}
        for index in range(len(configs))
    ]
    whole = {
        "name": "all",
        "platform": "ensemble",
        "input": [{"name": "t0", **tensor}],
        "output": [{"name": f"t{len(configs)}", **tensor}],
        "ensemble_scheduling": {"step": steps},
    }
    entries["all"] = entry("all", whole)
    return Catalog(entries=entries, target=target("26.07"), profile="gpu")


def _said(*configs, pool=None, concurrency=1, embedded=False, **tensor):
    catalog = _chain(*configs, **tensor)
    found = edges_of(
        catalog.entries["all"], catalog, Sizes(), pool_bytes=pool, concurrency=concurrency, embedded=embedded
    )
    return {one.tensor: one for one in found}


ORT = {"backend": "onnxruntime", "instance_group": GPU}
BATCHED = {**ORT, "max_batch_size": 8, "dynamic_batching": {}}
PYTHON = {"backend": "python", "instance_group": CPU}
ON_GPU = {"backend": "python", "instance_group": GPU}
TORCH = {**ON_GPU, "parameters": OPEN}
GIVING = {**ON_GPU, "parameters": {"device_outputs": {"string_value": "Y Z"}}}
NONE = {"device_outputs": {"string_value": "none"}}


@pytest.mark.parametrize(
    ("left", "right", "how", "place", "copies", "crossings"),
    [
        (ORT, ORT, "device copy", 0, 1, 0),
        (ORT, BATCHED, "gather", 0, 2, 0),
        (ORT, PYTHON, "host bounce", 0, 2, 1),
        (ORT, ON_GPU, "host bounce", 0, 2, 1),
        (ORT, TORCH, "device copy", 0, 2, 0),
        (TORCH, ORT, "device copy", 0, 1, 0),
        (TORCH, TORCH, "device copy", 0, 2, 0),
        (GIVING, ORT, "device copy", 0, 1, 0),
        ({**TORCH, "parameters": {**OPEN, **NONE}}, ORT, "upload", -1, 3, 1),
        (PYTHON, TORCH, "host copy", -1, 3, 0),
        (PYTHON, ORT, "upload", -1, 3, 1),
        (PYTHON, PYTHON, "host copy", -1, 3, 0),
        ({**ORT, "instance_group": CPU}, {**ORT, "instance_group": CPU}, "pointer", -1, 0, 0),
        (ORT, {**ORT, "instance_group": [{"kind": "KIND_GPU", "gpus": [1]}]}, "peer copy", 0, 2, 1),
    ],
)
def test_between_two_steps(left, right, how, place, copies, crossings):
    one = _said(left, right)["t1"]
    assert (one.how, one.place, one.copies, one.crossings) == (how, place, copies, crossings)
    assert one.bytes == 4000
    assert one.why


def test_the_shipped_pipelines_keep_their_large_tensors_on_the_device_where_the_backends_let_them():
    def large(release):
        plan = make_plan([assistant()], release)
        catalog = plan.catalog("gpu")
        python = release.endswith("stock-vllm")
        found = edges_of(catalog.entries["assistant"], catalog, sizes_of(plan.models), embedded=python)
        return {(one.source, one.target): (one.how, one.place) for one in found if one.bytes > 50_000}

    assert large("26.07-vllm+py3") == {
        ("caller", "whisper_features"): ("host copy", -1),
        ("whisper_features", "whisper_encoder"): ("upload", -1),
        ("whisper_features", "whisper_decoder"): ("host copy", -1),
        ("whisper_encoder", "whisper_decoder"): ("device copy", 0),
        ("caller", "yolo_preprocess"): ("host copy", -1),
        ("yolo_preprocess", "yolo"): ("gather", 0),
        ("yolo", "yolo_postprocess"): ("device copy", 0),
    }
    assert set(large("26.07-stock-vllm").values()) == {("host copy", -1)}


def test_at_the_ends_the_caller_is_on_the_host():
    said = _said(ORT)
    assert (said["t0"].how, said["t0"].source) == ("upload", "caller")
    assert (said["t1"].how, said["t1"].target, said["t1"].crossings) == ("host bounce", "caller", 1)


def test_strings_never_leave_the_host():
    one = _said(TORCH, TORCH, data_type="TYPE_STRING", dims=(1,))["t1"]
    assert (one.how, one.place) == ("host copy", -1)


def test_what_would_help_names_the_parameter_where_only_that_is_missing():
    assert 'Set FORCE_CPU_ONLY_INPUT_TENSORS to "no" in parameters of m1' in _said(ORT, ON_GPU)["t1"].better
    assert "Give m1 an instance on the GPU" in _said(ORT, PYTHON)["t1"].better


def test_the_embedded_servers_onnx_backend_is_a_process_on_the_host():
    cpu = {**ORT, "instance_group": CPU}
    assert (_said(cpu, cpu, embedded=True)["t1"].how, _said(cpu, cpu, embedded=True)["t1"].copies) == ("host copy", 3)


def test_what_does_not_fit_the_pool_falls_back_to_the_host_and_says_so():
    fits = _said(ORT, ORT, ORT, pool={0: 16000}, concurrency=1)
    assert [fits[name].how for name in ("t1", "t2", "t3")] == ["device copy", "device copy", "host bounce"]
    full = _said(ORT, ORT, ORT, pool={0: 8000}, concurrency=2)
    assert [full[name].place for name in ("t1", "t2", "t3")] == [0, -1, -1]
    assert "--cuda-memory-pool-byte-size" in full["t2"].better
    assert full["t2"].crossings == 2


def test_totals_add_up_what_one_request_costs():
    sum_ = totals(_said(ORT, ORT).values())
    assert (sum_.moved, sum_.copied, sum_.crossed) == (12000, 4000 * (1 + 1 + 2), 8000)
    assert sum_.by_how == {"upload": 4000, "device copy": 4000, "host bounce": 4000}


def test_sizes_that_vary_are_taken_from_the_model_or_the_person_else_they_are_marked(model):
    first = model("a", ["X FP32 [-1]"], ["Y FP32 [-1, 4]"])
    last = model("b", ["Y FP32 [-1, 4]"], ["Z STRING [1]"])
    steps = [Step(model=first, input_map="X", output_map="Y=y"), Step(model=last, input_map="Y=y", output_map="Z")]
    plan = make_plan([Pipeline(name="p", inputs="X", outputs="Z", steps=steps)])
    catalog = plan.catalog("cpu")

    def sized(given):
        found = edges_of(catalog.entries["p"], catalog, sizes_of(plan.models, given))
        return {one.tensor: (one.bytes, one.guessed) for one in found}

    assert sized({}) == {"X": (4, True), "y": (16, True), "Z": (68, False)}
    assert sized({"X": (100,), "Y": (7, 4), "Z": (10,)}) == {"X": (400, False), "y": (112, False), "Z": (14, False)}


LOG = """\
I1129 18:50:07.352712 8686 ensemble_scheduler.cc:569] "Internal response allocation: Y, size 4000, addr 0x7fad90007af0, memory type 2, type id 0"
"""  # noqa: E501


def test_the_log_as_predicted_and_every_way_it_can_differ():
    edges = list(_said(ORT, ORT).values())
    assert [one.verdict for one in compare(edges, read_placement(LOG))] == ["as predicted", "as predicted"]
    assert [one.verdict for one in compare(edges, read_placement(""))] == ["not seen", "not seen"]
    host = compare(edges, read_placement(LOG.replace("type 2", "type 1")))
    assert {(one.verdict, one.is_wrong) for one in host} == {("elsewhere", True)}
    assert "the CUDA pool may be full" in host[0].remark
    warned = LOG.replace("type 2", "type 1") + "W] Failed to allocate CUDA memory with byte size 9 on GPU 0: no room, "
    told = compare(edges, read_placement(warned + "falling back to pinned system memory"))
    assert "the log says that the CUDA pool was full" in told[0].remark
    other = compare(edges, read_placement(LOG.replace("type id 0", "type id 1")))
    assert "another GPU" in other[0].remark
    size = compare(edges, read_placement(LOG.replace("4000", "4001")))
    assert {one.verdict for one in size} == {"other size"}
    batch = compare(edges, read_placement(LOG.replace("4000", "32000")))
    assert not any(one.is_wrong for one in batch)


def test_missing_pinned_memory_is_no_full_pool():
    line = "W] Unable to allocate pinned system memory, pinned memory pool will not be available"
    assert not read_placement(f"{line}\nno pinned memory pool, falling back to non-pinned system memory").pool_was_full
