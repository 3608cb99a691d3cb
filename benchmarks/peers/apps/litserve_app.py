"""LitServe: batching on, its fast queue on, one worker with all cores."""

import sys
from typing import Annotated, Any

import litserve
from fastapi import Depends

from benchmarks.peers.apps.fastapi_app import body_of
from benchmarks.peers.work.services import SERVICES

Body = Annotated[bytes, Depends(body_of)]  # the bytes as they came; LitServe's default is JSON


class Served(litserve.LitAPI):
    """One service."""

    def __init__(self, name: str) -> None:
        self._name = name
        service = SERVICES[name]
        super().__init__(max_batch_size=service.most, batch_timeout=service.wait_s, api_path=f"/{name}")

    def setup(self, device: str) -> None:
        self._work = SERVICES[self._name].load()

    def decode_request(self, request: Body) -> Any:
        return SERVICES[self._name].read(request)

    def batch(self, inputs: list[Any]) -> list[Any]:
        return inputs

    def predict(self, asked: Any) -> Any:
        return self._work.batch(asked) if self.max_batch_size > 1 else self._work.batch([asked])[0]

    def unbatch(self, output: list[Any]) -> list[Any]:
        return output

    def encode_response(self, output: Any) -> Any:
        return {"answer": output}


if __name__ == "__main__":
    api = Served(sys.argv[2])
    server = litserve.LitServer(api, accelerator="cpu", workers_per_device=1, fast_queue=True, timeout=120)
    server.run(host="127.0.0.1", port=int(sys.argv[1]), log_level="warning", generate_client_file=False)
