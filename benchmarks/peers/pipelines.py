"""tritonkit's side: the shipped pipelines, one that hears and sees at once, and the two small networks as models."""

from __future__ import annotations

import json

from benchmarks.peers.work.places import LARGE, REPOSITORY
from benchmarks.peers.work.small import frame_file, gemm_file
from builder import Model, Pipeline, Step, onnx
from builder.backends.vllm import vllm
from builder.models.whisper import whisper as whisper_of
from builder.models.yolo import yolo as yolo_of
from builder.pipelines.detect import look
from builder.pipelines.transcribe import listen

WINDOW = {"max_queue_delay_microseconds": 10_000}


def both() -> Pipeline:
    """A recording and a picture in, transcript and detections out."""
    return Pipeline(
        name="both",
        inputs="AUDIO IMAGE LANGUAGE? TASK? MODE? CONFIDENCE? IOU?",
        outputs="TRANSCRIPT DETECTIONS",
        steps=[*listen(whisper_of(), "TRANSCRIPT"), *look(yolo_of(), "DETECTIONS", after="TRANSCRIPT")],
    )


def large_chat() -> Pipeline:
    """The larger language model alone, with the arguments of the shipped one."""
    shipped = json.loads((REPOSITORY / "llm" / "1" / "model.json").read_text(encoding="utf-8"))
    outputs = "TEXT FINISH_REASON PROMPT_TOKENS COMPLETION_TOKENS"
    step = Step(
        model=vllm("llm", engine=shipped, checkpoint=LARGE, pass_through=()),
        input_map="MESSAGES SAMPLING_PARAMETERS",
        output_map=outputs,
    )
    return Pipeline(name="large_chat", inputs="MESSAGES SAMPLING_PARAMETERS?", outputs=outputs, steps=[step])


def with_window() -> Pipeline:
    """The small network, batched within 10 ms."""
    return _of_one(onnx("gemm", file=gemm_file(), max_batch_size=32, dynamic_batching=WINDOW), "row", "answer")


def without_window() -> Pipeline:
    """The same network, a request at a time."""
    return _of_one(onnx("gemm_alone", file=gemm_file(), max_batch_size=1), "row", "answer")


def large() -> Pipeline:
    """The network that takes a large tensor."""
    return _of_one(onnx("frame", file=frame_file(), max_batch_size=1), "frame", "mean")


def _of_one(model: Model, tensor: str, answer: str) -> Pipeline:
    """A pipeline of one step, called after its model."""
    step = Step(model=model, input_map=tensor, output_map=answer)
    return Pipeline(name=f"{model.name}_pipeline", inputs=tensor, outputs=answer, steps=[step])
