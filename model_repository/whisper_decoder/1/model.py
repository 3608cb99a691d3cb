"""The decoder step: audio features become text.

Not decoupled, and yet many requests share one running batch: `execute` hands them to a decode loop and returns, and
their responses are sent from the loop's thread as they are done. The work is in the files beside this one.
A cancelled request leaves the batch; but inside an ensemble Triton tells a cancellation only to steps not yet begun.
"""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils
import whisper_job
import whisper_tokens
from whisper_job import Ask, Job
from whisper_loop import Cancelled, DecodeLoop
from whisper_slots import Graphs, Slots


class TritonPythonModel:
    """One checkpoint and its decode loop."""

    def initialize(self, args: dict[str, str]) -> None:
        folder = Path(args["model_repository"]) / args["model_version"]
        config = json.loads(args["model_config"])
        parameters = {name: value["string_value"] for name, value in config.get("parameters", {}).items()}
        self.encoder = parameters.get("encoder", "whisper_encoder")
        self.sizes, self.tokens = whisper_tokens.read_description(folder / "whisper.json")
        self.vocabulary = whisper_tokens.read_vocabulary(folder / "whisper.tiktoken")
        asked = parameters.get("intra_op_thread_count") or os.environ.get("OMP_NUM_THREADS") or "0"
        threads = int(asked) or len(os.sched_getaffinity(0))
        gpu = int(args["model_instance_device_id"]) if args["model_instance_kind"] == "GPU" else None
        slots = Slots(Graphs(folder, threads, gpu), self.sizes, int(parameters.get("decode_slots", "8")))
        self.loop = DecodeLoop(
            slots,
            self.sizes,
            self.tokens,
            encode=self._encode,
            encoder_batch_size=int(parameters.get("encoder_batch_size", "8")),
            log=pb_utils.Logger.log_error,
        )
        self.loop.start()

    def execute(self, requests: list[Any]) -> None:
        """Hand the requests to the decode loop; their responses come later, from its thread."""
        for request in requests:
            sender = request.get_response_sender()
            try:
                self.loop.submit(self._job(request, sender))
            except whisper_tokens.InputError as error:
                _send(sender, _failed(str(error), pb_utils.TritonError.INVALID_ARG))
            except Exception as error:  # raised from here it would leave the requests before it without their answers
                _send(sender, _failed(f"whisper_decoder: {error!r}", pb_utils.TritonError.INTERNAL))

    def finalize(self) -> None:
        self.loop.stop()

    def _job(self, request: Any, sender: Any) -> Job:
        features, mel, spans = (_array_of(request, name) for name in ("FEATURES", "MEL", "SPANS"))
        whisper_job.check_arrays(features, mel, spans, self.sizes)
        language, task, mode = (_text_of(request, name) for name in ("LANGUAGE", "TASK", "MODE"))
        ask = Ask(
            features=features,
            mel=mel,
            spans=spans,
            language=whisper_tokens.language_of(self.tokens, language),
            task=whisper_tokens.task_of(self.tokens, task),
            mode=whisper_job.mode_of(mode),
        )
        return Job(
            ask, self.tokens, self.vocabulary, sender.is_cancelled, lambda job, error: _answer(sender, job, error)
        )

    def _encode(self, mel: np.ndarray) -> np.ndarray:
        """Features of further windows, from the encoder model: float32 [n, n_audio_ctx, n_audio_state]."""
        response = pb_utils.InferenceRequest(
            model_name=self.encoder,
            requested_output_names=["features"],
            inputs=[pb_utils.Tensor("mel", mel)],
            preferred_memory=pb_utils.PreferredMemory(pb_utils.TRITONSERVER_MEMORY_CPU, 0),
        ).exec()
        if response.has_error():
            raise RuntimeError(f"{self.encoder}: {response.error().message()}")
        return pb_utils.get_output_tensor_by_name(response, "features").as_numpy().copy()


def _answer(sender: Any, job: Job, error: Exception | None) -> None:
    if isinstance(error, Cancelled):
        _send(sender, _failed(str(error), pb_utils.TritonError.CANCELLED))
    elif error is not None:
        _send(sender, _failed(f"whisper_decoder: {error}", pb_utils.TritonError.INTERNAL))
    else:
        texts = {
            "TRANSCRIPT": job.transcript(),
            "SEGMENTS": job.segments_json(),
            "DETECTED_LANGUAGE": job.language or "",
        }
        tensors = [pb_utils.Tensor(name, np.array([text.encode("utf-8")], np.object_)) for name, text in texts.items()]
        _send(sender, pb_utils.InferenceResponse(tensors))


def _failed(text: str, code: Any) -> Any:
    return pb_utils.InferenceResponse([], pb_utils.TritonError(text, code))


def _send(sender: Any, response: Any) -> None:
    sender.send(response, flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)


def _array_of(request: Any, name: str) -> np.ndarray:
    """A copy: the request's memory is the server's, and may go when `execute` has returned."""
    return pb_utils.get_input_tensor_by_name(request, name).as_numpy().copy()


def _text_of(request: Any, name: str) -> str:
    tensor = pb_utils.get_input_tensor_by_name(request, name)
    if tensor is None:
        return ""
    data = tensor.as_numpy().reshape(-1)[0]
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise whisper_tokens.InputError(
            f"{name}: invalid UTF-8 at byte {error.start}; UTF-8 text is expected; encode it as such"
        ) from error
