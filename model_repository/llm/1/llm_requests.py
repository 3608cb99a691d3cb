"""What one request asks for, and the responses that answer it, in Triton's tensors.

In: an InferenceRequest. Out: an `Ask`; and lists of output tensors for the first response, a delta, the last response.
"""

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils

INPUTS = ("MESSAGES", "PROMPT", "SAMPLING_PARAMETERS", "TEMPLATE_ARGUMENTS", "TRANSCRIPT", "DETECTIONS")
PASSED_THROUGH = ("TRANSCRIPT", "DETECTIONS")
LIFELINE = "LIFELINE"
ID_LENGTHS = range(16, 129)  # what is shorter could be guessed: whoever holds the lifeline can stop the request


class InputError(ValueError):
    """What is wrong with one input tensor, in four parts: input, found, expected, what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """The texts of one request; None: not given. id: the caller's, "" without one; an ensemble's steps have its id."""

    id: str
    messages: str | None
    prompt: str | None
    sampling_parameters: str | None
    template_arguments: str | None
    passed_through: tuple[tuple[str, str], ...]

    @property
    def length(self) -> int:
        """Characters to be tokenized, at most."""
        return sum(len(text or "") for text in (self.messages, self.prompt, self.template_arguments))


def read_ask(request: Any) -> Ask:
    """The request's texts.

    Raises:
        InputError: an input is no UTF-8 or not exactly one text.
    """
    texts = {name: text_of(name, pb_utils.get_input_tensor_by_name(request, name)) for name in INPUTS}
    return Ask(
        id=request.request_id(),
        messages=texts["MESSAGES"],
        prompt=texts["PROMPT"],
        sampling_parameters=texts["SAMPLING_PARAMETERS"],
        template_arguments=texts["TEMPLATE_ARGUMENTS"],
        passed_through=tuple((name, text) for name in PASSED_THROUGH if (text := texts[name]) is not None),
    )


def lifeline_of(request: Any) -> str | None:
    """The id of the request whose lifeline this one is; None: it is no lifeline.

    Raises:
        InputError: no such id, or something to answer besides.
    """
    request_id = text_of(LIFELINE, pb_utils.get_input_tensor_by_name(request, LIFELINE))
    if request_id is None:
        return None
    others = [name for name in INPUTS if pb_utils.get_input_tensor_by_name(request, name) is not None]
    if others:
        raise InputError(f"LIFELINE: {', '.join(others)} beside it; it stands alone; send two requests")
    if len(request_id) not in ID_LENGTHS:
        raise InputError(
            f"LIFELINE: {len(request_id)} characters; a request's id of {ID_LENGTHS[0]} to {ID_LENGTHS[-1]} is needed; "
            "give the request a random id, such as a UUID, and send it here, too"
        )
    return request_id


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


def delta_tensors(text: str, logprobs: list[Any]) -> list[Any]:
    """The next piece of the text, and what is known of its tokens if that was asked for."""
    return [text_tensor("TEXT", text), *([text_tensor("LOGPROBS", json.dumps(logprobs))] if logprobs else [])]


def last_tensors(
    text: str, logprobs: list[Any], finish_reason: str, prompt_tokens: int, completion_tokens: int
) -> list[Any]:
    """The rest of the text (often empty) and how the answer ended."""
    return [
        *delta_tensors(text, logprobs),
        text_tensor("FINISH_REASON", finish_reason),
        number_tensor("PROMPT_TOKENS", prompt_tokens),
        number_tensor("COMPLETION_TOKENS", completion_tokens),
    ]
