"""What the server itself counted, per model: Triton's statistics API before and after, and the difference.

In: an endpoint. Out: ModelCounts by model, the asked model first, then its steps in their order.
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import grpc
from google.protobuf import json_format
from tritonclient.grpc import service_pb2 as pb
from tritonclient.grpc import service_pb2_grpc
from tritonclient.grpc.model_config_pb2 import ModelConfig

from clients.endpoint import Endpoint
from clients.transports.grpc import CHANNEL_OPTIONS
from load.errors import LoadError

CALL_S = 10.0
STAGES = ("queue", "compute_input", "compute_infer", "compute_output")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """How often something was done, and the seconds it took in all."""

    count: int = 0
    seconds: float = 0.0

    def __sub__(self, other: Spent) -> Spent:
        return Spent(count=self.count - other.count, seconds=self.seconds - other.seconds)

    @property
    def mean_s(self) -> float:
        """Seconds each time; 0 if it was never done."""
        return self.seconds / self.count if self.count else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCounts:
    """One model.

    Attributes:
        requests: answered inferences; a request of a batch of 4 counts four times.
        executions: how often the model ran; fewer than requests where it was batched.
        failed: requests that ended in an error.
        queue, input, infer, output: waiting; gathering inputs; the model itself; handing out outputs. Per request: of
            a batch, each request counts the whole time.
        batches: by batch size, the time of the model itself, per execution.
    """

    requests: int
    executions: int
    failed: int
    queue: Spent
    input: Spent
    infer: Spent
    output: Spent
    batches: Mapping[int, Spent]

    def __sub__(self, other: ModelCounts) -> ModelCounts:
        sizes = {size: spent - other.batches.get(size, Spent()) for size, spent in self.batches.items()}
        return ModelCounts(
            requests=self.requests - other.requests,
            executions=self.executions - other.executions,
            failed=self.failed - other.failed,
            queue=self.queue - other.queue,
            input=self.input - other.input,
            infer=self.infer - other.infer,
            output=self.output - other.output,
            batches={size: spent for size, spent in sizes.items() if spent.count},
        )

    @property
    def mean_batch(self) -> float:
        """Requests per execution; 0 if it never ran."""
        return self.requests / self.executions if self.executions else 0.0


def model_counts(endpoint: Endpoint, models: tuple[str, ...]) -> dict[str, ModelCounts]:
    """The counts of these models and of all their steps, since the server loaded them.

    Raises:
        LoadError: the server does not tell.
    """
    try:
        with closing(_Server(endpoint)) as server:
            flow = list(dict.fromkeys(name for model in models for name in _with_steps(server, model)))
            found = {
                one.name: _counts(one) for one in server.statistics().model_stats
            }  # the newest version is the last
            return {name: found[name] for name in flow}
    except grpc.RpcError as error:
        words = f"{error.code().name}: {error.details()}"
        raise LoadError(str(endpoint), words, "statistics of the models are needed") from error
    except (OSError, KeyError) as error:
        raise LoadError(str(endpoint), str(error), "statistics of the models are needed") from error


def _with_steps(server: _Server, model: str) -> Iterator[str]:
    yield model
    for step in server.config(model).ensemble_scheduling.step:
        yield from _with_steps(server, step.model_name)


def _counts(found: Any) -> ModelCounts:
    stats = found.inference_stats
    queue, input_, infer, output = (_spent(getattr(stats, stage)) for stage in STAGES)
    return ModelCounts(
        requests=found.inference_count,
        executions=found.execution_count,
        failed=stats.fail.count,
        queue=queue,
        input=input_,
        infer=infer,
        output=output,
        batches={one.batch_size: _spent(one.compute_infer) for one in found.batch_stats},
    )


def _spent(one: Any) -> Spent:
    return Spent(count=one.count, seconds=one.ns / 1e9)


class _Server:
    """The two questions, over either protocol."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._channel = None
        if endpoint.scheme == "grpc":
            self._channel = grpc.insecure_channel(endpoint.address, options=CHANNEL_OPTIONS)
            self._stub = service_pb2_grpc.GRPCInferenceServiceStub(self._channel)

    def config(self, model: str) -> Any:
        if self._channel:
            return self._stub.ModelConfig(pb.ModelConfigRequest(name=model), timeout=CALL_S).config
        return self._get(f"{model}/config", ModelConfig())

    def statistics(self) -> Any:
        """Of all models, in one call: of one moment, as nearly as the server can say."""
        if self._channel:
            return self._stub.ModelStatistics(pb.ModelStatisticsRequest(), timeout=CALL_S)
        return self._get("stats", pb.ModelStatisticsResponse())

    def _get(self, path: str, message: Any) -> Any:
        with urllib.request.urlopen(f"{self._endpoint}/v2/models/{path}", timeout=CALL_S) as answer:
            return json_format.ParseDict(json.load(answer), message, ignore_unknown_fields=True)

    def close(self) -> None:
        if self._channel:
            self._channel.close()
