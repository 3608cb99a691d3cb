"""Every call on the memory transport: what is sent, and what is made of the answer."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest

from clients import (
    ArrayError,
    Client,
    ClientError,
    Delta,
    Detection,
    EndpointError,
    Finished,
    Heard,
    MemoryTransport,
    NotReady,
    RequestRejected,
    Seen,
    StreamBroken,
    connect,
    connect_async,
)
from clients.defaults import DEFAULT_URL
from clients.signature import Input, Signature

SAMPLES = np.zeros(16000, np.float32)
FOUND = {"width": 4, "height": 3, "detections": [{"label": "dog", "score": 0.5, "box": [0, 1, 2, 3]}]}
END = {
    "FINISH_REASON": "stop",
    "PROMPT_TOKENS": np.array([7], np.int32),
    "COMPLETION_TOKENS": np.array([2], np.int32),
}


class Models:
    """A client whose models note what they were sent and answer with what they were given."""

    def __init__(self, *answers: Mapping[str, Any], streams: bool = True) -> None:
        self.sent: dict[str, np.ndarray] = {}
        self.model = ""
        self.streamed = 0
        self._answers = answers

        def once(name: str, inputs: Mapping[str, np.ndarray]) -> Mapping[str, Any] | Iterator[Mapping[str, Any]]:
            self.model, self.sent = name, dict(inputs)
            return self._stream() if streams else answers[0]

        names = ("transcribe", "detect", "llm", "assistant", "assistant_audio", "assistant_image", "assistant_text")
        self.client = Client(MemoryTransport({name: lambda inputs, name=name: once(name, inputs) for name in names}))

    def _stream(self) -> Iterator[Mapping[str, Any]]:
        for answer in self._answers:
            self.streamed += 1
            yield answer

    def text(self, name: str) -> str:
        return self.sent[name][0].decode()


def test_transcribe_sends_samples_and_options_and_reads_segments() -> None:
    segments = [{"start": 0, "end": 1.5, "text": " Hi.", "tokens": [1], "avg_logprob": -0.1, "no_speech_prob": 0.2}]
    models = Models({"TRANSCRIPT": " Hi.", "SEGMENTS": json.dumps(segments), "DETECTED_LANGUAGE": "en"}, streams=False)
    transcript = models.client.transcribe(SAMPLES, language="en", task="translate", mode="fast")
    assert (models.model, models.sent["AUDIO"].shape) == ("transcribe", (16000,))
    assert [models.text(name) for name in ("LANGUAGE", "TASK", "MODE")] == ["en", "translate", "fast"]
    assert (transcript.text, transcript.language) == (" Hi.", "en")
    assert (transcript.segments[0].end_s, transcript.segments[0].tokens) == (1.5, (1,))


def test_transcribe_without_a_language_lets_the_model_find_it() -> None:
    models = Models({"TRANSCRIPT": "", "SEGMENTS": "[]", "DETECTED_LANGUAGE": "fr"}, streams=False)
    assert models.client.transcribe(SAMPLES).language == "fr"
    assert set(models.sent) == {"AUDIO", "TASK", "MODE"}


def test_transcribe_says_which_output_a_model_left_out() -> None:
    with pytest.raises(ArrayError, match="transcribe, output TRANSCRIPT: not in the answer"):
        Models({"SEGMENTS": "[]"}, streams=False).client.transcribe(SAMPLES)


def test_detect_sends_the_thresholds_given_and_reads_boxes() -> None:
    models = Models({"DETECTIONS": json.dumps(FOUND)}, streams=False)
    detections = models.client.detect(b"photo", confidence=0.25)
    assert set(models.sent) == {"IMAGE", "CONFIDENCE"}
    assert (models.sent["CONFIDENCE"].dtype, models.sent["CONFIDENCE"].tolist()) == (np.float32, [0.25])
    assert (detections.width, detections.height) == (4, 3)
    assert detections.items == (Detection(label="dog", score=0.5, box=(0.0, 1.0, 2.0, 3.0)),)


def test_chat_sends_every_sampling_option_and_always_a_limit() -> None:
    """CLI-10."""
    models = Models({"TEXT": "Hel"}, {"TEXT": "lo"}, END)
    events = list(models.client.chat("Hi", temperature=0.5, seed=None, stop=["\n"]))
    assert events == [
        Delta(text="Hel"),
        Delta(text="lo"),
        Finished(reason="stop", prompt_tokens=7, completion_tokens=2),
    ]
    assert json.loads(models.text("MESSAGES")) == [{"role": "user", "content": "Hi"}]
    options = json.loads(models.text("SAMPLING_PARAMETERS"))
    assert options == {"max_tokens": 256, "temperature": 0.5, "stop": ["\n"]}


def test_chat_sends_a_conversation_as_it_is() -> None:
    models = Models(END)
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
    list(models.client.chat(messages, max_tokens=5))
    assert json.loads(models.text("MESSAGES")) == messages
    assert json.loads(models.text("SAMPLING_PARAMETERS")) == {"max_tokens": 5}


def test_an_empty_piece_of_text_is_no_event() -> None:
    assert len(list(Models({"TEXT": ""}, {**END, "TEXT": ""}).client.chat("Hi"))) == 1


def test_text_may_come_with_the_end() -> None:
    events = list(Models({**END, "TEXT": "a"}).client.chat("Hi"))
    assert [type(event) for event in events] == [Delta, Finished]


@pytest.mark.parametrize(
    ("audio", "image", "model"),
    [
        (SAMPLES, b"photo", "assistant"),
        (SAMPLES, None, "assistant_audio"),
        (None, b"photo", "assistant_image"),
        (None, None, "assistant_text"),
    ],
)
def test_ask_chooses_the_pipeline_by_what_it_is_given(audio: Any, image: Any, model: str) -> None:
    models = Models(END)
    list(models.client.ask(audio, image, "What?"))
    assert models.model == model
    assert models.text("QUESTION") == "What?"
    assert ("AUDIO" in models.sent, "IMAGE" in models.sent) == (audio is not None, image is not None)


def test_ask_tells_what_it_heard_and_saw_before_the_answer() -> None:
    models = Models({"TRANSCRIPT": " Hi.", "DETECTIONS": json.dumps(FOUND)}, {"TEXT": "A dog."}, END)
    heard, seen, delta, finished = models.client.ask(SAMPLES, b"photo", "What?", language="en", iou=0.5, top_p=0.9)
    assert heard == Heard(transcript=" Hi.")
    assert isinstance(seen, Seen) and seen.detections.items[0].label == "dog"
    assert (delta, finished) == (Delta(text="A dog."), Finished(reason="stop", prompt_tokens=7, completion_tokens=2))
    assert (models.text("LANGUAGE"), models.sent["IOU"].tolist()) == ("en", [0.5])
    assert json.loads(models.text("SAMPLING_PARAMETERS")) == {"max_tokens": 256, "top_p": 0.9}


@pytest.mark.parametrize(("option", "words"), [({"language": "en"}, "without audio"), ({"iou": 0.5}, "without image")])
def test_an_option_without_what_it_is_for_is_refused_not_dropped(option: dict[str, Any], words: str) -> None:
    """CLI-10."""
    with pytest.raises(ArrayError, match=words):
        Models(END).client.ask(question="What?", **option)


def test_wrong_arguments_are_told_at_the_call_not_at_the_first_event() -> None:
    with pytest.raises(ArrayError, match="SAMPLING_PARAMETERS"):
        Models(END).client.chat("Hi", temperature=float("nan"))


def test_closing_an_answer_closes_the_model() -> None:
    models = Models(*[{"TEXT": "a"}] * 100, END)
    events = models.client.chat("Hi")
    next(events)
    events.close()
    assert models.streamed == 1
    assert list(events) == []


def test_an_answer_that_ends_without_a_reason_is_broken() -> None:
    events = Models({"TEXT": "a"}).client.chat("Hi")
    assert next(events) == Delta(text="a")
    with pytest.raises(StreamBroken, match="ended without a reason"):
        next(events)


def test_what_a_model_raises_passes_through() -> None:
    def fail(inputs: object) -> Any:
        raise RequestRejected("llm", "top_q: not a sampling parameter")

    with pytest.raises(RequestRejected, match="top_q"):
        list(Client(MemoryTransport({"llm": fail})).chat("Hi"))


def test_a_missing_model_is_not_ready_and_the_advice_is_how_to_start_one() -> None:
    with pytest.raises(NotReady, match="transcribe: not ready on memory://.*tritonkit serve"):
        Client(MemoryTransport({})).transcribe(SAMPLES)


def test_a_model_that_streams_can_not_be_inferred_in_memory_either() -> None:
    with pytest.raises(EndpointError, match=r"stream\(\)"):
        Models(END).client.transcribe(SAMPLES)


def test_infer_and_stream_check_inputs_against_the_signature() -> None:
    echo = Signature(
        model="echo",
        inputs={"X": Input(datatype="FP32", dims=(4,), is_optional=False)},
        max_batch_size=8,
        is_decoupled=False,
    )
    transport = MemoryTransport({"echo": lambda inputs: {"Y": inputs["X"]}}, {"echo": echo})
    client = Client(transport)
    assert client.infer("echo", {"X": np.ones(4, np.float32)})["Y"].shape == (1, 4)
    assert [part["Y"].shape for part in client.stream("echo", {"X": np.ones((2, 4), np.float32)})] == [(2, 4)]
    with pytest.raises(ArrayError, match="Did you mean X"):
        client.infer("echo", {"x": np.ones(4, np.float32)})


def test_wait_for_ready_names_the_model_that_is_not() -> None:
    client = Client(MemoryTransport({"llm": dict}))
    client.wait_for_ready("llm", limit_s=0.01)
    with pytest.raises(NotReady, match=r"detect: not ready.*waited 0\.01 s"):
        client.wait_for_ready("llm", "detect", limit_s=0.01)


def test_a_closed_client_says_so_and_may_be_closed_again() -> None:
    models = Models(END)
    with models.client as client:
        pass
    client.close()
    for call in (lambda: client.transcribe(SAMPLES), lambda: list(client.chat("Hi")), lambda: client.infer("llm", {})):
        with pytest.raises(EndpointError, match="the client was closed"):
            call()


@pytest.mark.parametrize("timeout_s", [0, -1, float("nan"), float("inf"), "5", None])
def test_a_timeout_that_is_none_is_refused(timeout_s: Any) -> None:
    with pytest.raises(EndpointError, match="timeout_s: .*a positive number of seconds"):
        connect(DEFAULT_URL, timeout_s=timeout_s)
    if timeout_s is not None:
        with pytest.raises(EndpointError, match="timeout_s"):
            Models(END).client.chat("Hi", timeout_s=timeout_s)


def test_shared_memory_with_another_machine_is_refused_at_once() -> None:
    for make in (connect, connect_async):
        with pytest.raises(EndpointError, match="shared memory needs a server on this one"):
            make("grpc://10.1.2.3:8001", shared_memory=True)


def test_the_asyncio_client_names_the_transport_that_it_has() -> None:
    with pytest.raises(EndpointError, match=r"no asyncio client speaks HTTP; grpc:// is needed"):
        connect_async("http://127.0.0.1:8000")


def test_all_errors_are_client_errors() -> None:
    for error in (ArrayError, EndpointError, NotReady, RequestRejected, StreamBroken):
        assert issubclass(error, ClientError)
