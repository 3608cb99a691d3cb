"""Samples to a finished job through the served code of all three models, without a server."""

from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

import numpy as np
import onnxruntime
import whisper_audio
import whisper_spans
from whisper_job import Ask, Job
from whisper_loop import DecodeLoop
from whisper_slots import Slots

ENCODER_BATCH = 8


class Listener:
    """Features, encoder and decoder of one export."""

    def __init__(self, served, *, slots: int = 8, threads: int = 1) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        path = str(Path(served.folder) / "encoder.onnx")
        self._encoder = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self._served = served
        self._loop = DecodeLoop(
            Slots(served.graphs, served.sizes, slots), served.sizes, served.tokens,
            encode=self._encode, encoder_batch_size=ENCODER_BATCH, log=print,
        )  # fmt: skip

    def __enter__(self) -> "Listener":
        self._loop.start()
        return self

    def __exit__(self, *_) -> None:
        self._loop.stop()

    def ask_of(
        self, samples: np.ndarray, *, mode: str = "exact", language: str | None = None, task: str = "transcribe"
    ) -> Ask:
        mel = whisper_audio.log_mel(samples, self._served.sizes.n_mels)
        spans = whisper_spans.plan_spans(mel, mode)
        features = self._encode(whisper_audio.windows(mel, spans[:ENCODER_BATCH]))
        return Ask(features=features, mel=mel, spans=spans, language=language, task=task, mode=mode)

    def listen(self, ask: Ask) -> "Future[Job]":
        future: Future[Job] = Future()

        def finish(job: Job, error: Exception | None) -> None:
            future.set_exception(error) if error else future.set_result(job)

        never: Callable[[], bool] = lambda: False  # noqa: E731
        self._loop.submit(Job(ask, self._served.tokens, self._served.vocabulary, never, finish))
        return future

    def _encode(self, mel: np.ndarray) -> np.ndarray:
        return self._encoder.run(None, {"mel": mel})[0]


def tokens_of(job: Job) -> list[int]:
    return [token for segment in job.segments() for token in segment.tokens]


def package_s_tokens(transcript: dict) -> list[int]:
    return [token for segment in transcript["segments"] for token in segment["tokens"]]
