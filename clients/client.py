"""The calls, as methods: what a person passes in, a typed value or a stream of typed events out."""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from types import TracebackType
from typing import Any, Self, TypeVar

import numpy as np

from clients import assistant, detect, llm, transcribe
from clients.audio import Audio
from clients.base import BaseClient
from clients.defaults import MAX_TOKENS, SAMPLE_RATE_HZ
from clients.image import Image
from clients.llm import Message
from clients.ready import wait_for_ready
from clients.signature import Signature, check_answers_once, request_for
from clients.steps import run
from clients.tensors import Request, Response
from clients.transports import Transport, problems
from clients.values import ChatEvent, Detections, Event, Finished, Transcript

Found = TypeVar("Found", bound=Event)


class Client(BaseClient[Transport]):
    """Calls one server; made by connect(). Any number of threads may use it at once."""

    def transcribe(
        self,
        samples: Audio,
        *,
        sample_rate_hz: int = SAMPLE_RATE_HZ,
        language: str | None = None,
        task: transcribe.Task = "transcribe",
        mode: transcribe.Mode = "exact",
        timeout_s: float | None = None,
    ) -> Transcript:
        """What is said in a recording.

        Args:
            samples: a path, the bytes of a sound file, or an array [n] or [n, channels] of float32 -1 to 1 or int16.
            sample_rate_hz: the rate of an array.
            language: Whisper's code, such as "en"; None finds it.
            task: "translate" gives English text whatever is spoken.
            mode: "exact" as openai-whisper does it, or "fast" with all windows at once.
        """
        request = transcribe.transcribe_request(
            samples, sample_rate_hz=sample_rate_hz, language=language, task=task, mode=mode
        )
        return transcribe.read_transcript(self._infer(request, timeout_s))

    def detect(
        self,
        image: Image,
        *,
        confidence: float | None = None,
        iou: float | None = None,
        timeout_s: float | None = None,
    ) -> Detections:
        """The objects in a picture.

        Args:
            image: a path, the bytes of an image file, uint8 pixels [height, width(, 3 or 4)], or a PIL image.
            confidence: the least score to report, 0 to 1; None leaves it to the model.
            iou: how much two boxes may overlap before one is dropped, 0 to 1; None leaves it to the model.
        """
        request = detect.detect_request(image, confidence=confidence, iou=iou)
        return detect.read_detections(self._infer(request, timeout_s))

    def chat(
        self,
        messages: Sequence[Message] | str,
        *,
        max_tokens: int = MAX_TOKENS,
        timeout_s: float | None = None,
        **sampling: Any,
    ) -> Generator[ChatEvent, None, None]:
        """The next message of a chat, as it is written; closing the generator stops the server.

        Args:
            messages: [{"role": "user", "content": "..."}, ...], or one string.
            sampling: any sampling parameter of the engine, such as temperature, top_p, seed, stop.
        """
        request = llm.chat_request(messages, max_tokens=max_tokens, **sampling)
        return self._events(request, llm.read_chat_events, timeout_s)

    def ask(
        self,
        audio: Audio | None = None,
        image: Image | None = None,
        question: str = "",
        *,
        timeout_s: float | None = None,
        **options: Any,
    ) -> Generator[Event, None, None]:
        """The answer to a question about a recording, a picture, both or neither, as it comes.

        First Heard and Seen, if there is something to hear and see; then Deltas of the answer; Finished at the end.
        Closing the generator stops the server.

        Args:
            options: those of transcribe() and detect(), max_tokens, and any sampling parameter of the engine.
        """
        request = assistant.ask_request(audio, image, question, **options)
        return self._events(request, assistant.read_events, timeout_s)

    def infer(
        self, model: str, inputs: Mapping[str, Any], *, timeout_s: float | None = None
    ) -> Mapping[str, np.ndarray]:
        """The outputs of any model that answers once, by name; text as object arrays of bytes.

        Args:
            inputs: arrays, text or lists of text by name, with or without the batch dimension; checked against the
                model's
                config before anything is sent.
        """
        signature = self._signature(model, timeout_s)
        check_answers_once(signature)
        return self._infer(request_for(signature, inputs), timeout_s).outputs

    def stream(
        self, model: str, inputs: Mapping[str, Any], *, timeout_s: float | None = None
    ) -> Generator[Mapping[str, np.ndarray], None, None]:
        """The outputs of any model, response by response; closing the generator stops the server."""
        request = request_for(self._signature(model, timeout_s), inputs)
        return (response.outputs for response in self._stream(request, self._limit_s(timeout_s)))

    def wait_for_ready(self, *models: str, limit_s: float = 60.0) -> None:
        """Returns when the server has loaded all these models; NotReady or Unreachable after limit_s."""
        self._check_open()
        run(wait_for_ready(self._transport.endpoint, models, limit_s), self._transport)

    def close(self) -> None:
        """Cancels what is in flight and leaves nothing behind, in this machine's shared memory or in the server."""
        if self._is_closed:
            return
        self._is_closed = True
        self._transport.close()
        if self._sharing:
            self._sharing.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _infer(self, request: Request, timeout_s: float | None) -> Response:
        self._check_open()
        limit_s = self._limit_s(timeout_s)

        def call(one: Request) -> Response:
            with self._placed(one) as placed:
                return self._transport.infer(placed, limit_s)

        return self._chains.infer(request, call)

    def _stream(self, request: Request, limit_s: float) -> Generator[Response, None, None]:
        self._check_open()

        def call(one: Request) -> Generator[Response, None, None]:
            held = run(self._lifelines.attached(one, limit_s), self._transport)
            with self._placed(held) as placed, closing(self._transport.stream(placed, limit_s)) as responses:
                yield from responses

        return self._chains.stream(request, call)

    def _events(
        self, request: Request, read: Callable[[Response], Iterator[Found]], timeout_s: float | None
    ) -> Generator[Found, None, None]:
        return self._read_events(request, read, self._limit_s(timeout_s))

    def _read_events(
        self, request: Request, read: Callable[[Response], Iterator[Found]], limit_s: float
    ) -> Generator[Found, None, None]:
        is_finished = False
        with closing(self._stream(request, limit_s)) as responses:
            for response in responses:
                for event in read(response):
                    is_finished = isinstance(event, Finished)
                    yield event
        if not is_finished:
            raise problems.broken(request.model, self._transport.endpoint, "the answer ended without a reason")

    @contextmanager
    def _placed(self, request: Request) -> Iterator[Request]:
        if not self._sharing:
            yield request
            return
        names: list[str] = []
        try:
            yield run(self._sharing.place(request, names), self._transport)
        finally:
            run(self._sharing.release(names), self._transport)

    def _signature(self, model: str, timeout_s: float | None) -> Signature:
        self._check_open()
        if model not in self._signatures:
            self._signatures[model] = self._transport.signature(model, self._limit_s(timeout_s))
        return self._signatures[model]
