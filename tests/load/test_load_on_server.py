"""Load on the shipped pipelines and the real server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from load import Closed, Fixed, Item, LoadPlan, TritonTarget, ceiling_per_s, items_for, run

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def pictures() -> tuple[Item, ...]:
    return items_for("detect", image_pixels=(160, 600))


@pytest.mark.parametrize("scheme", ["grpc", "http"])
@pytest.mark.parametrize("shared_memory", [False, True], ids=["message", "shared_memory"])
def test_every_way_finds_the_same_and_the_server_counts_the_same_requests(
    served: Any, pictures: tuple[Item, ...], scheme: str, shared_memory: bool
) -> None:
    url = f"{scheme}://{getattr(served, scheme)}"
    target = TritonTarget(url=url, items=pictures, shared_memory=shared_memory)
    result = run(LoadPlan(target=target, arrivals=Fixed(per_s=10), seconds=0.6, warmup_s=0))
    assert len(result.records) == 6 and result.error_rate == 0, result.problems
    assert result.names == ("coffee.jpg 160 px", "coffee.jpg 600 px") and min(result.alone_s) > 0
    models = result.models
    assert list(models) == ["detect", "yolo_preprocess", "yolo", "yolo_postprocess"]
    assert {one.requests for one in models.values()} == {6} and not any(one.failed for one in models.values())
    yolo = models["yolo"]
    assert yolo.executions == sum(one.count for one in yolo.batches.values()) <= 6
    assert sum(size * one.count for size, one in yolo.batches.items()) == 6
    assert 0 < yolo.infer.mean_s < models["detect"].infer.mean_s < result.latency_s.mean
    assert not list(Path("/dev/shm").glob("tritonkit-client-*"))


def test_the_assistant_is_streamed_to_several_callers_and_its_tokens_are_timed(served: Any) -> None:
    items = items_for("assistant", audio_seconds=(2,), max_tokens=12)
    target = TritonTarget(url=f"grpc://{served.grpc}", items=items)
    result = run(LoadPlan(target=target, arrivals=Closed(callers=2), seconds=1, warmup_s=0))
    assert result.error_rate == 0 and len(result.records) >= 2, result.problems
    for one in result.right:
        assert one.sent_s < one.first_s <= one.token_s[0] <= one.token_s[-1] <= one.ended_s, "heard, then written"
        assert 0 < one.tokens <= 12 and len(one.token_s) <= one.tokens
    assert result.first_token_s and result.between_tokens_s
    assert 0 < result.between_tokens_s.p50 < result.first_token_s.p50 < result.latency_s.worst
    assert list(result.models)[:2] == ["assistant", "whisper_features"]


def test_the_ceiling_of_the_generator_is_far_above_what_a_model_does(served: Any, pictures: tuple[Item, ...]) -> None:
    target = TritonTarget(url=f"grpc://{served.grpc}", items=pictures)
    found = ceiling_per_s(LoadPlan(target=target, arrivals=Closed(callers=8)))
    assert found is not None and found > 300
