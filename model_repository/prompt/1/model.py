"""The prompt step: what was heard, seen and asked become chat messages, by template.jinja.

The work is in prompt_messages.py beside this file.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import prompt_messages
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """Renders one template."""

    def initialize(self, args: dict[str, str]) -> None:
        self.template = prompt_messages.load_template(
            Path(args["model_repository"]) / args["model_version"] / "template.jinja"
        )

    def execute(self, requests: list[Any]) -> list[Any]:
        return [self._response(request) for request in requests]

    def _response(self, request: Any) -> Any:
        try:
            texts = [_text_of(request, name) for name in ("TRANSCRIPT", "DETECTIONS", "QUESTION")]
            messages = prompt_messages.messages_from(self.template, *texts)
        except prompt_messages.PromptError as error:
            return pb_utils.InferenceResponse([], pb_utils.TritonError(str(error), pb_utils.TritonError.INVALID_ARG))
        text = json.dumps(messages, ensure_ascii=False).encode("utf-8")
        return pb_utils.InferenceResponse([pb_utils.Tensor("MESSAGES", np.array([text], dtype=np.object_))])


def _text_of(request: Any, name: str) -> str | None:
    tensor = pb_utils.get_input_tensor_by_name(request, name)
    return None if tensor is None else prompt_messages.text_from(name, list(tensor.as_numpy().reshape(-1)))
