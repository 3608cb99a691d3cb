"""What one request asks for, and the responses that answer it, in Triton's tensors.

In: an InferenceRequest. Out: an `Ask`; and lists of output tensors for the first response, a delta, the last response.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils

INPUTS = ("MESSAGES", "PROMPT", "SAMPLING_PARAMETERS", "TRANSCRIPT", "DETECTIONS")
PASSED_THROUGH = ("TRANSCRIPT", "DETECTIONS")


class InputError(ValueError):
    """What is wrong with one input tensor, in four parts: input, found, expected, what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """The texts of one request; None: not given."""

    messages: str | None
    prompt: str | None
    sampling_parameters: str | None
    passed_through: tuple[tuple[str, str], ...]


def read_ask(request: Any) -> Ask:
    """The request's texts.

    Raises:
        InputError: an input is no UTF-8 or not exactly one text.
    """
    texts = {name: text_of(name, pb_utils.get_input_tensor_by_name(request, name)) for name in INPUTS}
    return Ask(
        messages=texts["MESSAGES"],
        prompt=texts["PROMPT"],
        sampling_parameters=texts["SAMPLING_PARAMETERS"],
        passed_through=tuple((name, text) for name in PASSED_THROUGH if (text := texts[name]) is not None),
    )


def text_of(name: str, tensor: Any) -> str | None:
    """The one text of a TYPE_STRING tensor, None when the tensor was not sent."""
    if tensor is None:
        return None
    values = tensor.as_numpy().reshape(-1)
    if len(values) != 1:
        raise InputError(f"{name}: {len(values)} texts; exactly 1 is needed; send a tensor of shape [1]")
    value = values[0]
    try:
        return value if isinstance(value, str) else bytes(value).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{name}: byte {error.start} is 0x{value[error.start]:02x}, which is no UTF-8; UTF-8 text is needed; "
            "encode the text as UTF-8"
        ) from error


def text_tensor(name: str, text: str) -> Any:
    return pb_utils.Tensor(name, np.array([text.encode("utf-8")], dtype=np.object_))


def number_tensor(name: str, number: int) -> Any:
    return pb_utils.Tensor(name, np.array([number], dtype=np.int32))


def first_tensors(ask: Ask) -> list[Any]:
    """TRANSCRIPT and DETECTIONS as they came: what the caller may see before the first token."""
    return [text_tensor(name, text) for name, text in ask.passed_through]


def delta_tensors(text: str) -> list[Any]:
    return [text_tensor("TEXT", text)]


def last_tensors(text: str, finish_reason: str, prompt_tokens: int, completion_tokens: int) -> list[Any]:
    """The rest of the text (often empty) and how the answer ended."""
    return [
        text_tensor("TEXT", text),
        text_tensor("FINISH_REASON", finish_reason),
        number_tensor("PROMPT_TOKENS", prompt_tokens),
        number_tensor("COMPLETION_TOKENS", completion_tokens),
    ]
