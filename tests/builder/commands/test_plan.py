"""The command `plan`: tables, JSON, exit status, and what it says of a log."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest
from typer.testing import CliRunner

from builder.__main__ import app
from builder.commands.plan import pinned_release, vllm_of

LINE = (
    'I0 1 ensemble_scheduler.cc:569] "Internal response allocation: {}, size {}, addr 0x7, memory type {}, type id 0"\n'
)


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITONKIT_CACHE", str(tmp_path / "cache"))

    def invoke(*arguments: object):
        return CliRunner().invoke(app, ["plan", *(str(one) for one in arguments)])

    return invoke


def test_what_fits_is_shown_with_all_that_follows(run):
    done = run("assistant", "--gpu", "L40S", "--llm", "Qwen/Qwen2.5-7B-Instruct")
    assert done.exit_code == 0, done.output
    for text in (
        "GPU 0: L40S, 44.34 GiB",
        "7.62 billion in bfloat16",
        "kv_cache_memory_bytes",
        "--cuda-memory-pool-byte-size",
        "--shm-size",
        "of 32,768 tokens",
        "audio_features",
        "device copy",
        "an instance of whisper_features there, its output by DLPack and named in device_outputs",
        "KKKKK",
    ):
        assert text in done.stdout
    assert "it counts nothing until `tritonkit weights` made it" in done.stdout


def test_what_does_not_fit_ends_in_one_with_the_sum_and_what_would(run):
    done = run("assistant", "--gpu", "RTX 3090", "--llm", "meta-llama/Llama-3.1-8B-Instruct")
    assert done.exit_code == 1
    assert "does not fit  GPU 0 (RTX 3090): tritonserver" in done.stderr
    assert "What would fit:\n  shorter sequences: max_model_len" in done.stderr
    shorter = run(
        "assistant", "--gpu", "RTX 3090", "--llm", "meta-llama/Llama-3.1-8B-Instruct", "--engine", "max_model_len=8192"
    )
    assert shorter.exit_code == 0, shorter.stderr


def test_json_is_one_object_with_numbers(run):
    done = run("assistant", "--gpu", "80GiB", "--llm", "Qwen/Qwen3-8B", "--json")
    told = json.loads(done.stdout)
    assert told["memory"]["fits"] is True
    assert (
        sum(part["bytes"] for part in told["memory"]["accounts"][0]["parts"]) == told["memory"]["accounts"][0]["used"]
    )
    edge = next(one for one in told["edges"] if one["tensor"] == "audio_features")
    assert (edge["bytes"], edge["place"], edge["how"]) == (1500 * 384 * 4, 0, "device copy")


def test_a_log_is_compared_edge_by_edge_and_a_contradiction_ends_in_one(run, tmp_path):
    log = tmp_path / "server.log"
    rows = {"IMAGES": 519168, "GEOMETRY": 20, "output0": 60840}
    log.write_text("".join(LINE.format(name, size, 0) for name, size in rows.items()))
    good = run("detect", "--profile", "cpu", "--verify", log)
    assert good.exit_code == 0, good.output
    assert good.stdout.count("as predicted") == 3
    assert "not seen" in good.stdout
    wrong = run("detect", "--gpu", "L4", "--verify", log)
    assert wrong.exit_code == 1
    assert (
        "predictions (yolo, output0): elsewhere: predicted on GPU 0, seen on host: fell back to the host"
        in wrong.stderr
    )


def test_a_log_that_tells_nothing_verifies_nothing(run, tmp_path):
    (tmp_path / "server.log").write_text("I1130 not verbose\n")
    done = run("detect", "--profile", "cpu", "--verify", tmp_path / "server.log")
    assert done.exit_code == 1
    assert "the log tells of none of these tensors. Start the server with --log-verbose=1" in done.stderr


def test_a_url_where_no_server_is_ends_in_one(run):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        done = run("detect", "--profile", "cpu", "--verify", url)
    assert done.exit_code == 1
    assert f"{url}: no Triton server answers" in done.stderr


def test_without_a_gpu_here_one_must_be_named(run):
    if Path("/dev/nvidiactl").exists():
        pytest.skip("this machine has a GPU")
    done = run("detect")
    assert done.exit_code == 1
    assert "--gpu detected: nvidia-smi finds no GPU on this machine" in done.stderr


@pytest.mark.parametrize(
    "wrong", [["--size", "AUDIO"], ["--size", "AUDIO=x"], ["--reserve", "yolo=much"], ["--profile", "tpu"],
              ["--verify", "no-such.log"]]
)  # fmt: skip
def test_wrong_usage_ends_in_two(run, wrong):
    assert run("detect", "--gpu", "L4", *wrong).exit_code == 2


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["--size", "IMAG=5"], "--size: no tensor is called IMAG; did you mean IMAGE?"),
        (["--reserve", "yollo=2GiB"], "--reserve: no model is called yollo; did you mean yolo?"),
        (["--engine", "max_model_len=5"], "--engine: max_model_len, and no language model in detect"),
    ],
)
def test_a_name_that_is_not_there_is_refused(run, given, told):
    done = run("detect", "--gpu", "L4", *given)
    assert done.exit_code == 1 and told in done.stderr, done.stderr


def test_sizes_from_the_person_count(run):
    def audio(*more):
        told = json.loads(run("transcribe", "--gpu", "L4", "--json", *more).stdout)
        return next(one["bytes"] for one in told["edges"] if one["tensor"] == "AUDIO")

    assert (audio(), audio("--size", "AUDIO=16000")) == (480_000 * 4, 16_000 * 4)


def test_the_release_and_its_vllm_come_from_the_pinned_image(checkout):
    assert f"TRITON_RELEASE={pinned_release()}\n" in (checkout / "docker" / "versions.env").read_text()
    assert vllm_of(pinned_release())[:2] == (0, 24)
    assert vllm_of("24.10") == (0, 5, 5)


def test_compose_gets_pools_and_shared_memory(run, tmp_path):
    assert run("assistant", "--gpu", "L40S", "--llm", "Qwen/Qwen3-8B", "--env", tmp_path / "plan.env").exit_code == 0
    lines = dict(line.split("=") for line in (tmp_path / "plan.env").read_text().splitlines())
    assert lines == {"CUDA_POOLS": "0:67108864", "PINNED_POOL_BYTES": "268435456", "SHM_SIZE": "1024m"}


def test_compose_gets_the_pool_of_every_gpu(run, tmp_path):
    wanted = ("detect", "--gpu", "2xL4", "--chains", "2", "--env", tmp_path / "plan.env")
    assert run(*wanted).exit_code == 0
    assert "CUDA_POOLS=0:67108864,1:67108864\n" in (tmp_path / "plan.env").read_text()


def test_a_request_goes_through_one_chain_and_costs_what_that_one_does(run):
    one = json.loads(run("detect", "--gpu", "L4", "--json").stdout)["totals"]
    two = json.loads(run("detect", "--gpu", "2xL4", "--chains", "2", "--json").stdout)["totals"]
    assert two == {"detect": one["detect"], "detect_gpu1": one["detect"]}
    assert run("detect", "--gpu", "2xL4", "--chains", "2").stdout.count(": one request moves ") == 2


def test_build_for_a_gpu_fills_in_what_the_plan_says(tmp_path, monkeypatch, checkout):
    monkeypatch.setenv("TRITONKIT_CACHE", str(tmp_path / "cache"))
    out = tmp_path / "repository"
    wanted = ["build", "assistant", "--out", str(out), "--no-weights", "--target", "26.07-vllm+py3"]
    wanted += ["--llm", "Qwen/Qwen3-8B", "--engine", "max_model_len=8192"]
    done = CliRunner().invoke(app, [*wanted, "--gpu", "H100"])
    assert done.exit_code == 0, done.output
    told = json.loads((out / "llm" / "1" / "model.json").read_text())
    assert told["max_model_len"] == 8192
    assert told["kv_cache_memory_bytes"] > 8192 * 147_456
    assert 0.5 < told["gpu_memory_utilization"] < 0.95
    assert told["model"] == "Qwen/Qwen3-8B"
    refused = CliRunner().invoke(app, [*wanted, "--gpu", "T4"])
    assert (refused.exit_code, "does not fit  GPU 0 (T4)" in refused.stderr) == (1, True)
    assert json.loads((out / "llm" / "1" / "model.json").read_text()) == told


def test_build_for_a_gpu_limits_the_arenas_of_networks_that_are_there(tmp_path, checkout, monkeypatch):
    if not (checkout / ".cache" / "exports" / "yolov3-tiny" / "model.onnx").exists():
        pytest.fail("no exports. Run `make build-repo` first; `make test` does it.")
    monkeypatch.setenv("TRITONKIT_CACHE", str(checkout / ".cache"))
    out = tmp_path / "repository"
    wanted = ["build", "detect", "--out", str(out), "--no-weights", "--target", "26.07", "--gpu", "L4"]
    done = CliRunner().invoke(app, wanted)
    assert done.exit_code == 0, done.output
    config = (out / "yolo" / "configs" / "gpu.pbtxt").read_text()
    assert 'key: "gpu_mem_limit"' in config and 'name: "cuda"' in config
    assert "gpu_mem_limit" not in (out / "yolo" / "config.pbtxt").read_text()


def test_users_are_counted_for_the_gpu_that_is_named_and_nothing_is_passed_over_in_silence(run):
    assert run("assistant", "--users", "500").stdout.startswith("no --gpu was named: the sums are for an L40S")
    assert "no --gpu" not in run("assistant", "--users", "500", "--gpu", "H100").stdout
    refused = run("assistant", "--users", "500", "--llm", "Qwen/Qwen3-8B", "--chains", "2")
    assert (refused.exit_code, "--llm, --chains changes nothing" in " ".join(refused.stderr.split())) == (2, True)
