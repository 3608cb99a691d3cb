"""What `nvidia-smi` says of each process beside the plan; its words as it writes them, the processes as on a server."""

from __future__ import annotations

from builder.handover.running import differences
from builder.memory.devices import gpus
from builder.memory.measured import Process, measured, owner_of
from builder.memory.planning import Ask, plan_memory
from builder.pipelines.assistant import assistant
from builder.plan import make_plan

STUB = "/opt/tritonserver/backends/python/triton_python_backend_stub /models/{}/1/model.py triton_python_backend_shm 1"
PROCESSES = {
    1: Process(parent=0, command="/sbin/docker-init -- python3 -m starter run"),
    7: Process(parent=1, command="tritonserver --model-repository=/models"),
    20: Process(parent=7, command=STUB.format("yolo_preprocess")),
    21: Process(parent=7, command=STUB.format("llm")),
    22: Process(parent=21, command="VLLM::EngineCore"),
    23: Process(parent=7, command=STUB.format("clip")),
    30: Process(parent=0, command="python3 train.py"),
}
GPUS = "0, GPU-aa\n1, GPU-bb\n"


def test_a_process_belongs_to_the_model_above_it():
    assert [owner_of(pid, PROCESSES) for pid in (7, 20, 22, 30, 99)] == [
        "tritonserver",
        "yolo_preprocess",
        "llm",
        "",
        "",
    ]


def test_every_process_stands_beside_its_plan(checkout, monkeypatch):
    plan = make_plan([assistant()], "26.07-vllm+py3")
    memory = plan_memory(plan, Ask(devices=gpus("L4"), version=(0, 24)), checkout / ".cache" / "exports")
    (account,) = memory.accounts
    inside = sum(one.bytes for one in account.parts if one.kind != "arena"
                 and one.owner in ("tritonserver", "whisper_encoder", "yolo"))  # fmt: skip
    llm = sum(one.bytes for one in account.parts if one.owner == "llm")
    listing = "".join(
        f"GPU-aa, {pid}, {size}\n"
        for pid, size in {7: inside >> 20, 20: 8000, 22: (llm >> 20) - 10, 23: 700, 30: 5000}.items()
    )
    found = {one.owner: one for one in measured(memory.accounts, listing, GPUS, PROCESSES)}
    assert abs(found["tritonserver"].found - inside) < 1 << 20 and found["tritonserver"].planned == inside
    assert (found["tritonserver"].is_far, found["llm"].is_far) == (False, False)
    assert found["yolo_preprocess"].is_far and found["clip"].planned == 0 and found["clip"].is_far
    assert found["whisper_decoder"].found == 0 and found["whisper_decoder"].is_far
    assert (
        "train.py" not in str(found) and sum(one.found for one in found.values()) < sum((8000, 700, llm, inside)) << 20
    )


def test_a_model_that_is_not_ready_and_one_with_another_config_are_told():
    catalog = make_plan([assistant()], "26.07-vllm+py3").catalog("gpu")
    running = {name: dict(one.config) for name, one in catalog.entries.items()}
    assert differences(catalog, running) == ()
    running["prompt"] = None
    running["yolo"] = {**running["yolo"], "max_batch_size": 1}
    told = {(one.model, one.what, one.planned, one.found) for one in differences(catalog, running)}
    assert told == {("prompt", "state", "ready", "not ready"), ("yolo", "max_batch_size", "8", "1")}
