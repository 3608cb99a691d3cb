"""The pipelines `transcribe` and `detect` in one process, with no server: what the ensembles are measured against.

In: samples or the bytes of a picture. Out: what the ensemble gives. The files, the options of their sessions, the
threads and all code of the steps are those of the model repository; what is left out is what a server adds. Network and
encoder take whatever waits as one batch, as Triton's dynamic batcher does; Whisper's decoder is the repository's own
running batch; no more threads than cores prepare and finish requests at once.
"""

from __future__ import annotations

import json
import queue
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf import json_format, text_format
from tritonclient.grpc.model_config_pb2 import ModelConfig

CHECKOUT = Path(__file__).parents[1]
SERVED = ("whisper_features", "whisper_decoder", "yolo_preprocess", "yolo_postprocess")
Arrays = dict[str, np.ndarray]


class Batches:
    """A thread that runs one session: all that waits, up to `most` rows, in one run."""

    def __init__(self, session: Any, most: int) -> None:
        self._session, self._most = session, most
        self._waiting: queue.SimpleQueue[tuple[np.ndarray, Future[np.ndarray]]] = queue.SimpleQueue()
        self._name = session.get_inputs()[0].name
        threading.Thread(target=self._work, daemon=True).start()

    def run(self, rows: np.ndarray) -> np.ndarray:
        """The session's first output for these rows; waits for it."""
        answer: Future[np.ndarray] = Future()
        self._waiting.put((rows, answer))
        return answer.result()

    def _work(self) -> None:
        kept = None
        while True:
            group = [kept or self._waiting.get()]
            kept, rows = None, len(group[0][0])
            while not self._waiting.empty():
                following = self._waiting.get()
                if rows + len(following[0]) > self._most:
                    kept = following
                    break
                group.append(following)
                rows += len(following[0])
            together = group[0][0] if len(group) == 1 else np.concatenate([each for each, _ in group])
            try:
                (answers, *_) = self._session.run(None, {self._name: together})
            except Exception as error:  # the callers hear of it
                for _, answer in group:
                    answer.set_exception(error)
                continue
            for each, answer in group:
                answer.set_result(answers[: len(each)])
                answers = answers[len(each) :]


class OneProcess:
    """Both pipelines over one model repository.

    Args:
        threads: of each session.
        log: told what can be told to no caller.
    """

    def __init__(self, repository: Path, threads: int, log: Callable[[str], None] = print) -> None:
        sys.path[:0] = [
            *(str(repository / name / "1") for name in SERVED),
            str(CHECKOUT / "embedded/backends/onnxruntime"),
        ]
        import whisper_tokens
        from whisper_loop import DecodeLoop
        from whisper_slots import Graphs, Slots

        self._at_once = threading.Semaphore(threads)
        self._encoder = self._batches(repository / "whisper_encoder", threads)
        self._network = self._batches(repository / "yolo", threads)
        folder = repository / "whisper_decoder" / "1"
        sizes, self._tokens = whisper_tokens.read_description(folder / "whisper.json")
        self._vocabulary, self._n_mels = whisper_tokens.read_vocabulary(folder / "whisper.tiktoken"), sizes.n_mels
        slots = Slots(Graphs(folder, threads), sizes, 8)
        self._loop = DecodeLoop(slots, sizes, self._tokens, encode=self._encoder.run, encoder_batch_size=8, log=log)
        self._loop.start()
        self._described = json.loads((repository / "yolo_preprocess/1/yolo.json").read_text(encoding="utf-8"))
        self._labels = (repository / "yolo_postprocess/1/labels.txt").read_text(encoding="utf-8").splitlines()

    def transcribe(self, samples: np.ndarray) -> str:
        """The transcript of float32 [n], mono, 16 kHz."""
        import whisper_audio
        import whisper_spans
        from whisper_job import Ask, Job

        with self._at_once:
            whisper_audio.check_samples(samples, 7200.0)
            mel = whisper_audio.log_mel(samples, self._n_mels)
            spans = whisper_spans.plan_spans(mel, "exact")
            windows = whisper_audio.windows(mel, spans[:8])
        features = self._encoder.run(windows)
        done: Future[str] = Future()

        def finish(job: Job, error: Exception | None) -> None:
            if error is not None:
                done.set_exception(error)
            else:
                job.segments_json()
                done.set_result(job.transcript())

        ask = Ask(features=features, mel=mel, spans=spans, language="en", task="transcribe", mode="exact")
        self._loop.submit(Job(ask, self._tokens, self._vocabulary, lambda: False, finish))
        return done.result()

    def detect(self, content: bytes) -> str:
        """The detections in a picture file, as the JSON that `detect` gives."""
        from yolo_boxes import suppress_overlaps, to_original
        from yolo_candidates import candidates_in
        from yolo_letterbox import pad
        from yolo_picture import Limits, fitted_picture

        width, height = self._described["width"], self._described["height"]
        with self._at_once:
            pixels, letterbox = fitted_picture(content, width, height, Limits())
            images = pad(pixels, letterbox, width, height)
        predictions = self._network.run(images[None])
        with self._at_once:
            found = candidates_in(predictions, self._described["layout"], self._described["classes"], 0.25)
            found = suppress_overlaps(found, 0.45, 300)
            geometry = letterbox.tensor()
            boxes = to_original(found.boxes, geometry)
            labels = [self._labels[number] for number in found.classes]
            return _summary(labels, found.scores, boxes, geometry)

    @staticmethod
    def _batches(model: Path, threads: int) -> Batches:
        from ort_session import open_session

        message = text_format.Parse((model / "config.pbtxt").read_text(encoding="utf-8"), ModelConfig())
        config = json_format.MessageToDict(message, preserving_proto_field_name=True)
        config.setdefault("parameters", {})["intra_op_thread_count"] = {"string_value": str(threads)}
        return Batches(open_session(model / "1" / "model.onnx", config), message.max_batch_size)


def _summary(labels: list[str], scores: np.ndarray, boxes: np.ndarray, geometry: np.ndarray) -> str:
    detections = [
        {"label": label, "score": round(float(score), 4), "box": [round(float(side), 2) for side in box]}
        for label, score, box in zip(labels, scores, boxes, strict=True)
    ]
    return json.dumps({"width": int(geometry[0]), "height": int(geometry[1]), "detections": detections})
