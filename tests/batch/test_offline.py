"""A repository's models without a server: the results are the server's."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from google.protobuf import text_format
from tritonclient.grpc.model_config_pb2 import ModelConfig

from batch.errors import OfflineError
from batch.offline import OfflineTransport, in_order, of_rank


def ensemble(*steps: tuple[str, list[str], list[str]]) -> Any:
    config = ModelConfig(name="e")
    for name, takes, makes in steps:
        step = config.ensemble_scheduling.step.add(model_name=name)
        step.input_map.update({one: one for one in takes})
        step.output_map.update({one: one for one in makes})
    return config


def test_steps_come_after_those_whose_tensors_they_take() -> None:
    config = ensemble(("c", ["b", "x"], ["out"]), ("b", ["a"], ["b"]), ("a", ["x", "missing"], ["a"]))
    assert [step.model_name for step in in_order(config)] == ["a", "b", "c"]
    with pytest.raises(OfflineError, match="wait for each other"):
        list(in_order(ensemble(("a", ["b"], ["a"]), ("b", ["a"], ["b"]))))


@pytest.mark.parametrize(
    ("shape", "rank", "fitted"),
    [((3, 4), 3, (1, 3, 4)), ((1, 3, 4), 2, (3, 4)), ((2, 3, 4), 2, (2, 3, 4)), ((3, 4), 2, (3, 4))],
)
def test_batch_of_one_is_put_before_or_taken(shape: tuple[int, ...], rank: int, fitted: tuple[int, ...]) -> None:
    assert of_rank(np.zeros(shape), rank).shape == fitted


def test_backend_that_needs_a_server_is_named(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m/config.pbtxt").write_text(text_format.MessageToString(ModelConfig(backend="tensorrt")))
    with pytest.raises(OfflineError, match="tensorrt"):
        OfflineTransport(tmp_path, ["m"], timeout_s=1)


@pytest.mark.server
@pytest.mark.parametrize("pipeline", ["detect", "transcribe"])
def test_results_are_those_of_the_server(
    pipeline: str, served: Any, run: Callable, lines: Callable, tmp_path: Path, checkout: Path
) -> None:
    picture = next((checkout / "samples").rglob("*.jpg"))
    samples, rate_hz = soundfile.read(next((checkout / "samples").rglob("*.flac")), dtype="float32")
    soundfile.write(tmp_path / "five_seconds.wav", samples[: 5 * rate_hz], rate_hz)
    (tmp_path / "no_media").write_bytes(b"no media")
    fields = {"detect": "image", "transcribe": "audio"}[pipeline]
    files = [str(picture) if pipeline == "detect" else "five_seconds.wav", "no_media"]
    source = tmp_path / "in.jsonl"
    source.write_text("".join(json.dumps({fields: file}) + "\n" for file in files))
    outs = {}
    for how, words in {
        "server": ("--url", f"grpc://{served.grpc}"),
        "offline": ("--repository", checkout / "model_repository", "--offline"),
    }.items():
        out = tmp_path / f"{how}.jsonl"
        status, said = run(source, out, "--pipeline", pipeline, *words)
        assert status == 1 and "1 rows could not be done" in said
        outs[how] = lines(out)
    assert len(outs["server"]) == 1 and outs["offline"] == outs["server"]


def test_offline_needs_a_repository(run: Callable, tmp_path: Path) -> None:
    status, said = run(tmp_path, tmp_path / "o.jsonl", "--pipeline", "detect", "--url", "grpc://x:1", "--offline")
    assert status == 2 and "--offline goes with --repository" in said
