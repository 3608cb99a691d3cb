"""The decoder step: audio features become text.

Not decoupled as shipped, and yet many requests share one running batch: `execute` hands them to a decode loop and
returns, and their responses are sent from the loop's thread as they are done. The work is in the files beside this one.
With an instance on a GPU the features, the caches and the encoder's further answers stay there (torch, DLPack).
Where the config says decoupled, each response holds the segments that were not told before, as soon as they are done.
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
from whisper_memory import Array, Device, Host, Memory
from whisper_slots import Graphs, Slots
from whisper_track import Segment


class TritonPythonModel:
    """One checkpoint and its decode loop."""

    def initialize(self, args: dict[str, str]) -> None:
        folder = Path(args["model_repository"]) / args["model_version"]
        config = json.loads(args["model_config"])
        parameters = {name: value["string_value"] for name, value in config.get("parameters", {}).items()}
        self.streams = bool(config.get("model_transaction_policy", {}).get("decoupled"))
        self.encoder = parameters.get("encoder", "whisper_encoder")
        self.sizes, self.tokens = whisper_tokens.read_description(folder / "whisper.json")
        self.vocabulary = whisper_tokens.read_vocabulary(folder / "whisper.tiktoken")
        asked = parameters.get("intra_op_thread_count") or os.environ.get("OMP_NUM_THREADS") or "0"
        threads = int(asked) or len(os.sched_getaffinity(0))
        gpu = args["model_instance_kind"] == "GPU"
        self.memory: Memory = Device(f"cuda:{args['model_instance_device_id']}") if gpu else Host()
        slots = Slots(Graphs(folder, threads, self.memory), self.sizes, int(parameters.get("decode_slots", "8")))
        if gpu:  # a language model measures what is left of the GPU when it loads
            slots.warm_up()
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
        features, mel, spans = (self._copied(_needed(request, name)) for name in ("FEATURES", "MEL", "SPANS"))
        spans = spans if isinstance(spans, np.ndarray) else spans.cpu().numpy()
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
            ask,
            self.tokens,
            self.vocabulary,
            sender.is_cancelled,
            finish=lambda job, error: _answer(sender, job, error, self.streams),
            tell=(lambda job: _tell(sender, job)) if self.streams else None,
        )

    def _encode(self, mel: Array) -> Array:
        """Features of further windows, from the encoder model: float32 [n, n_audio_ctx, n_audio_state]."""
        on_host = isinstance(self.memory, Host)
        kind = pb_utils.TRITONSERVER_MEMORY_CPU if on_host else pb_utils.TRITONSERVER_MEMORY_GPU
        response = pb_utils.InferenceRequest(
            model_name=self.encoder,
            requested_output_names=["features"],
            inputs=[_tensor("mel", mel)],
            preferred_memory=pb_utils.PreferredMemory(kind, 0 if on_host else self.memory.number),
        ).exec()
        if response.has_error():
            raise RuntimeError(f"{self.encoder}: {response.error().message()}")
        return self._copied(pb_utils.get_output_tensor_by_name(response, "features"))

    def _copied(self, tensor: Any) -> Array:
        """A copy of a tensor, numpy's if it lies on the host, else where this instance computes.

        The server's memory may go when `execute` has returned, or the response is dropped.
        """
        if tensor.is_cpu():
            return tensor.as_numpy().copy()
        import torch

        return self.memory.moved(torch.from_dlpack(tensor.to_dlpack()))


def _tell(sender: Any, job: Job) -> None:
    """Sends the segments that are new, if there are any."""
    if segments := job.new_segments():
        sender.send(_response(job, segments))


def _answer(sender: Any, job: Job, error: Exception | None, streams: bool) -> None:
    """Sends the last response: all segments, or of a stream those that are left."""
    if isinstance(error, Cancelled):
        _send(sender, _failed(str(error), pb_utils.TritonError.CANCELLED))
    elif error is not None:
        _send(sender, _failed(f"whisper_decoder: {error}", pb_utils.TritonError.INTERNAL))
    else:
        _send(sender, _response(job, job.new_segments(), strip=not streams))


def _response(job: Job, segments: list[Segment], *, strip: bool = False) -> Any:
    text = job.text_of(segments)
    texts = {
        "TRANSCRIPT": text.strip() if strip else text,
        "SEGMENTS": whisper_job.json_of(segments),
        "DETECTED_LANGUAGE": job.language or "",
    }
    return pb_utils.InferenceResponse(
        [pb_utils.Tensor(name, np.array([text.encode("utf-8")], np.object_)) for name, text in texts.items()]
    )


def _failed(text: str, code: Any) -> Any:
    return pb_utils.InferenceResponse([], pb_utils.TritonError(text, code))


def _send(sender: Any, response: Any) -> None:
    sender.send(response, flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)


def _tensor(name: str, array: Array) -> Any:
    return pb_utils.Tensor(name, array) if isinstance(array, np.ndarray) else pb_utils.Tensor.from_dlpack(name, array)


def _needed(request: Any, name: str) -> Any:
    """An input without which nothing can be decoded. Triton only counts the inputs where some are optional."""
    tensor = pb_utils.get_input_tensor_by_name(request, name)
    if tensor is None:
        raise whisper_tokens.InputError(f"{name}: missing; every request needs it")
    return tensor


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
