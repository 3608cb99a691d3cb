"""The model that every model of a random repository runs: outputs as its config declares them, zeros all the way.

Written into version folders as `model.py`. A wildcard becomes the size that the model's parameter `SIZE` names; a
batching model answers with the rows of its request; a decoupled one with as many responses as `RESPONSES` says.
"""

import json
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils


def number(text: str) -> int:
    """A small number, 2 where the text is none."""
    return int(text) if text.isdigit() and len(text) < 3 else 2


class TritonPythonModel:
    """Zeros of the declared types and dims."""

    def initialize(self, args: dict[str, str]) -> None:
        config = json.loads(args["model_config"])
        parameters = {key: value.get("string_value", "") for key, value in config.get("parameters", {}).items()}
        self.size = number(parameters.get("SIZE", ""))
        self.responses = number(parameters.get("RESPONSES", ""))
        self.is_batching = config["max_batch_size"] > 0
        self.is_decoupled = config.get("model_transaction_policy", {}).get("decoupled", False)
        self.outputs = [
            (output["name"], output["data_type"], self.shape(output), output.get("dims")) for output in config["output"]
        ]

    def shape(self, output: dict[str, Any]) -> list[int]:
        # A model behind a reshape answers in the reshaped form; the server turns it back into dims.
        dims = output["reshape"]["shape"] if "reshape" in output else output["dims"]
        return [self.size if size == -1 else size for size in dims]

    def answer(self, request: Any) -> Any:
        rows = []
        if self.is_batching:
            tensors = request.inputs()
            rows = [tensors[0].shape()[0] if tensors else 1]
        wanted = set(request.requested_output_names())
        tensors = []
        for name, data_type, shape, _ in self.outputs:
            if self.is_decoupled or name in wanted:
                dtype = pb_utils.triton_string_to_numpy(data_type)
                values = (
                    np.full(rows + shape, b"x", object) if data_type == "TYPE_STRING" else np.zeros(rows + shape, dtype)
                )
                tensors.append(pb_utils.Tensor(name, values))
        return pb_utils.InferenceResponse(tensors)

    def execute(self, requests: list[Any]) -> list[Any] | None:
        if not self.is_decoupled:
            return [self.answer(request) for request in requests]
        for request in requests:
            sender = request.get_response_sender()
            for _ in range(self.responses):
                sender.send(self.answer(request))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        return None
