"""How many GPUs for so many users: the sums, on paper.

In: assumptions (what people ask, what a GPU does). Out: a `Capacity` of one GPU with every bound on it, the lowest of
which counts; a `Fleet` for a number of users. Each figure follows from the assumptions alone.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tuning.errors import TuningError
from tuning.network import Network, Station, Step
from tuning.published import DATA, Gpu, batch_times, gpu_named, prompt_s, token_step_s
from tuning.search import highest_rate
from tuning.settings import Serving

HOURS_PER_MONTH = 730
WINDOW_S = 30.0  # of Whisper
DELAY_S = 0.002


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """Requests a second that one GPU answers within the promise.

    Attributes:
        bounds: by name, requests a second at which this alone is full.
        gpu_s: GPU seconds that a request takes, by part.
        sequences: that the language model works on at once, at the bound.
    """

    gpu: Gpu
    bounds: Mapping[str, float]
    gpu_s: Mapping[str, float]
    sequences: float

    @property
    def per_s(self) -> float:
        """The lowest bound."""
        return min(self.bounds.values())

    @property
    def bound(self) -> str:
        """Its name."""
        return min(self.bounds, key=self.bounds.__getitem__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """GPUs for some users, those in reserve included; `gbit` a second come in at the busiest hour."""

    users: int
    per_s: float
    gpus: int
    nodes: int
    month: float
    gbit: float
    bound: str


def read_assumptions(path: Path | None = None) -> dict[str, Any]:
    """The assumptions of a file, or the shipped ones; a file may hold only what differs.

    Raises:
        TuningError: it is no JSON, or says something that nobody asks for.
    """
    values: dict[str, Any] = json.loads((DATA / "flagship.json").read_text(encoding="utf-8"))
    if path is None:
        return values
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise TuningError(str(path), str(error), "a JSON file is needed", "Copy flagship.json") from error
    return changed(values, told, str(path))


def changed(values: Mapping[str, Any], told: Mapping[str, Any], where: str) -> dict[str, Any]:
    """`values` with what is told; keys that are not there already are refused."""
    result = dict(values)
    for key, value in told.items():
        if key not in values:
            raise TuningError(where, f"{key} is no assumption", f"one of {', '.join(values)} is needed", "Correct it")
        result[key] = changed(values[key], value, f"{where}, {key}") if isinstance(values[key], Mapping) else value
    return result


def capacity(assumed: Mapping[str, Any], gpu_name: str, hour: float | None = None) -> Capacity:
    """What one GPU answers when it runs all models of the assistant."""
    gpu = gpu_named(gpu_name, assumed["reached"], hour)
    request, models = assumed["request"], assumed["models"]
    parts = gpu_seconds(assumed, gpu)
    kept = kept_tokens(assumed)
    cache_bytes = gpu.memory_bytes * 0.95 - assumed["other_memory_gib"] * 2**30 - models["llm"]["weight_gb"] * 1e9
    if cache_bytes <= kept * models["llm"]["kv_bytes_per_token"]:
        raise TuningError(
            gpu_name,
            f"no room for the KV cache of one request beside {models['llm'].get('about', 'the language model')}",
            "a larger GPU is needed",
            "Name one, or give another model by --assume",
        )
    fits = cache_bytes / (kept * models["llm"]["kv_bytes_per_token"])
    other_s = sum(seconds for name, seconds in parts.items() if name != "answer")
    most = float(assumed["busy_at_most"])

    def held(rate: float) -> float:
        return sequences_at(rate, assumed, gpu, other_s)

    bounds = {
        "GPU time": highest(lambda rate: rate * other_s < most and math.isfinite(held(rate))),
        "token speed": highest(
            lambda rate: (
                token_gap_s(held(rate), rate, assumed, gpu, other_s) <= assumed["promise"]["between_tokens_ms"] / 1000
            )
        ),
        "KV cache": highest(lambda rate: held(rate) <= fits),
        "network": network_bound(assumed),
        "heard and seen in time": first_part_bound(assumed, gpu),
    }
    rate = min(bounds.values())
    step_s = token_step_s(models["llm"], gpu, max(1.0, held(rate)), kept)
    answer_s = request["answer_tokens"] * step_s / max(1.0, held(rate))
    return Capacity(gpu=gpu, bounds=bounds, gpu_s={**parts, "answer": answer_s}, sequences=held(rate))


def gpu_seconds(assumed: Mapping[str, Any], gpu: Gpu) -> dict[str, float]:
    """GPU seconds of a request on average, by part, in batches of half the largest; the answer is left open."""
    request, models = assumed["request"], assumed["models"]

    def each(name: str) -> float:
        rows = max(1, models[name]["largest_batch"] // 2)
        return batch_times(models[name], gpu).mean(rows) / rows

    windows = math.ceil(request["audio_seconds"] / WINDOW_S)
    written_s = request["transcript_tokens"] * token_step_s(models["decoder"], gpu, 4, 1500) / 4
    return {
        "hear (encoder)": request["audio_share"] * windows * each("encoder"),
        "hear (decoder)": request["audio_share"] * windows * written_s,
        "see": request["image_share"] * each("detector"),
        "prompt": prompt_s(models["llm"], gpu, request["prompt_tokens"]),
    }


def kept_tokens(assumed: Mapping[str, Any]) -> float:
    """Tokens that the KV cache holds for a sequence on average: the prompt, and half of the answer."""
    return assumed["request"]["prompt_tokens"] + assumed["request"]["answer_tokens"] / 2


def sequences_at(rate: float, assumed: Mapping[str, Any], gpu: Gpu, other_s: float) -> float:
    """Sequences under way at this rate (Little's law); the more, the slower each token. Infinite if it never ends."""
    left = 1 - rate * other_s  # what the other parts leave of the GPU
    if left <= 0:
        return math.inf
    count = 0.0
    for _ in range(200):
        step_s = token_step_s(assumed["models"]["llm"], gpu, max(1.0, count), kept_tokens(assumed)) / left
        after = rate * assumed["request"]["answer_tokens"] * step_s
        if abs(after - count) < 1e-6 * (1 + count):
            return after
        if after > 1e5:
            return math.inf
        count = after
    return count


def token_gap_s(sequences: float, rate: float, assumed: Mapping[str, Any], gpu: Gpu, other_s: float) -> float:
    """Between two tokens of an answer, when so many are under way."""
    if not math.isfinite(sequences):
        return math.inf
    step_s = token_step_s(assumed["models"]["llm"], gpu, max(1.0, sequences), kept_tokens(assumed))
    return step_s / (1 - rate * other_s)


def network_bound(assumed: Mapping[str, Any]) -> float:
    """Requests a second of one GPU's share of its node's network."""
    node = assumed["node"]
    share = node["network_gbit"] * 1e9 / 8 * node["network_busy_at_most"] / node["gpus"]
    return float(share / max(1.0, request_bytes(assumed)))


def request_bytes(assumed: Mapping[str, Any]) -> float:
    """Bytes that come in with a request, on average."""
    request = assumed["request"]
    audio = request["audio_share"] * request["audio_seconds"] * request["audio_bytes_per_s"]
    return float(audio + request["image_share"] * request["image_bytes"])


def first_part_bound(assumed: Mapping[str, Any], gpu: Gpu) -> float:
    """Requests a second for which hearing and seeing keep their promise: by the model of the batcher.

    Encoder and detector batch dynamically on one GPU, half of which the language model takes.
    """
    request, models = assumed["request"], assumed["models"]
    stations, share = {}, {"encoder": request["audio_share"], "detector": request["image_share"]}
    for name, part in share.items():
        if not part:
            continue
        serving = Serving(max_batch_size=models[name]["largest_batch"], dynamic=True, max_queue_delay_s=DELAY_S)
        stations[name] = Station(serving=serving, times=batch_times(models[name], gpu), runs_on="gpu")
    if not stations:
        return math.inf
    # One kind of request at a time: each kind alone on what the other leaves is the safe side.
    promise_s = assumed["promise"]["heard_and_seen_p95_ms"] / 1000
    rates = [
        highest_rate(
            Network(
                stations={name: station},
                steps=(Step(model=name),),
                capacity={"cpu": 1e3, "gpu": 0.5 / len(stations)},
            ),
            promise_s,
        )
        / share[name]
        for name, station in stations.items()
    ]
    return min(rates)


def highest(holds: Any) -> float:
    """The highest rate at which something holds, which gets no easier with the rate."""
    low, high = 0.0, 1.0
    while holds(high) and high < 1e5:
        low, high = high, 2 * high
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def peak_per_s(users: int, assumed: Mapping[str, Any]) -> float:
    """Requests a second in the busiest hour."""
    people = assumed["people"]
    return float(users * people["active_in_busiest_hour"] * people["requests_per_active_hour"] / 3600)


def fleet(users: int, assumed: Mapping[str, Any], one: Capacity) -> Fleet:
    """GPUs that answer the busiest hour of these users, with those in reserve."""
    rate = peak_per_s(users, assumed)
    needed = max(1, math.ceil(rate / one.per_s - 1e-9))
    gpus = needed + int(assumed["spare_gpus"])
    return Fleet(
        users=users,
        per_s=rate,
        gpus=gpus,
        nodes=math.ceil(gpus / assumed["node"]["gpus"]),
        month=gpus * one.gpu.hour * HOURS_PER_MONTH,
        gbit=rate * request_bytes(assumed) * 8 / 1e9,
        bound=one.bound if rate > one.per_s else "one, and the spare",
    )
