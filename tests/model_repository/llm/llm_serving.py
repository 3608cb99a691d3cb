"""A repository with the model `llm` and the small Llama, and a client for it: what the tests beside this file share."""

import contextlib
import json
import os
import queue
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil

ROOT = Path(__file__).parents[3]
SERVED = ROOT / "model_repository" / "llm" / "1"
CHECKPOINT = ROOT / "weights" / "llm" / "checkpoint"

TEXT_INPUTS = (
    "MESSAGES",
    "PROMPT",
    "SAMPLING_PARAMETERS",
    "TEMPLATE_ARGUMENTS",
    "LIFELINE",
    "TRANSCRIPT",
    "DETECTIONS",
)
OUTPUTS = {
    "TRANSCRIPT": "TYPE_STRING",
    "DETECTIONS": "TYPE_STRING",
    "TEXT": "TYPE_STRING",
    "LOGPROBS": "TYPE_STRING",
    "FINISH_REASON": "TYPE_STRING",
    "PROMPT_TOKENS": "TYPE_INT32",
    "COMPLETION_TOKENS": "TYPE_INT32",
}
MODEL_JSON = {
    "model": "checkpoint",
    "dtype": "float32",
    "max_model_len": 2048,
    "enforce_eager": True,
    "kv_cache_memory_bytes": 2**28,
    "max_num_seqs": 16,
    "override_generation_config": {"temperature": 0.0},
}


def engine_pids() -> set[int]:
    """Engine processes below this one, those of the server that all tests share among them."""
    below = psutil.Process().children(recursive=True)
    return {child.pid for child in below if "EngineCore" in " ".join(child.cmdline())}


def write_llm(repository: Path, template: str = "", **changes: Any) -> Path:
    """The model `llm` in a repository folder, its engine arguments changed by `changes`, with a chat template."""
    version = repository / "llm" / "1"
    version.mkdir(parents=True)
    for file in SERVED.glob("*.py"):
        (version / file.name).symlink_to(file)
    (version / "checkpoint").symlink_to(CHECKPOINT)
    (version / "model.json").write_text(json.dumps({**MODEL_JSON, **changes}))
    if template:
        (version / "chat_template.jinja").write_text(template)
    (repository / "llm" / "config.pbtxt").write_text(config_text())
    return repository


def config_text() -> str:
    inputs = [f'input {{ name: "{name}" data_type: TYPE_STRING dims: [1] optional: true }}' for name in TEXT_INPUTS]
    outputs = [f'output {{ name: "{name}" data_type: {kind} dims: [1] }}' for name, kind in OUTPUTS.items()]
    head = ['backend: "python"', "model_transaction_policy { decoupled: true }", "instance_group { kind: KIND_CPU }"]
    return "\n".join([*head, *inputs, *outputs])


@dataclass(frozen=True)
class Response:
    """One response of the stream: its tensors' values, or the error."""

    values: dict[str, Any]
    error: str | None = None


class Stream:
    """One gRPC stream to `llm`, as plain tritonclient does it."""

    def __init__(self, address: str) -> None:
        import tritonclient.grpc as grpcclient

        self.grpcclient = grpcclient
        self.client = grpcclient.InferenceServerClient(address)
        self.responses: queue.Queue[tuple[Any, Any]] = queue.Queue()
        self.client.start_stream(lambda result, error: self.responses.put((result, error)))

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close(cancel=kind is not None)  # a test that has failed waits for no answer

    def close(self, *, cancel: bool = False) -> None:
        self.client.stop_stream(cancel_requests=cancel)
        self.client.close()

    def send(self, request_id: str = "", **texts: str | bytes) -> None:
        inputs = []
        for name, text in texts.items():
            tensor = self.grpcclient.InferInput(name, [1], "BYTES")
            data = text if isinstance(text, bytes) else text.encode()
            tensor.set_data_from_numpy(np.array([data], dtype=np.object_))
            inputs.append(tensor)
        self.client.async_stream_infer("llm", inputs, request_id=request_id, enable_empty_final_response=True)

    def receive(self, timeout_s: float = 60) -> Iterator[Response]:
        """The responses of one request, up to its final flag."""
        while True:
            result, error = self.responses.get(timeout=timeout_s)
            if error is not None:
                yield Response({}, error.message())
                return
            response = result.get_response()
            values = {output.name: result.as_numpy(output.name)[0] for output in response.outputs}
            if values:
                yield Response({k: v.decode() if isinstance(v, bytes) else int(v) for k, v in values.items()})
            if response.parameters["triton_final_response"].bool_param:
                return


@dataclass(frozen=True)
class Llm:
    """A running server with the model `llm`: its gRPC and HTTP addresses, and the engine's arguments."""

    address: str
    http: str
    engine: dict[str, Any]

    def stream(self) -> Stream:
        return Stream(self.address)

    def ask(self, **texts: str | bytes) -> list[Response]:
        with self.stream() as stream:
            stream.send(**texts)
            return list(stream.receive())


@contextlib.contextmanager
def server(repository: Path) -> Iterator[Llm]:
    """A real server over the repository, for as long as the `with` lasts."""
    from embedded.server import EmbeddedServer

    cache = Path(os.environ.get("TRITONKIT_CACHE", ROOT / ".cache"))
    with EmbeddedServer(repository, entry=["llm"], cache=cache) as running:
        yield Llm(running.grpc, running.http, MODEL_JSON)


def joined(responses: list[Response]) -> str:
    return "".join(response.values.get("TEXT", "") for response in responses)


def chat(heard: str | None, seen: str | None, question: str) -> str:
    """MESSAGES as the prompt step writes them."""
    lines = [f'Heard: "{heard}"' if heard else None, f"Seen: {seen}" if seen else None, f"Question: {question}"]
    return json.dumps([{"role": "user", "content": "\n".join(line for line in lines if line)}])
