"""Every call against a real server, over both protocols, with and without shared memory; stand-in models."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clients import (
    ArrayError,
    Client,
    ClientError,
    Delta,
    EndpointError,
    Finished,
    Heard,
    NotReady,
    RequestRejected,
    RequestTimeout,
    Seen,
    Unreachable,
    connect,
    connect_async,
)

pytestmark = [pytest.mark.server, pytest.mark.usefixtures("nothing_is_left")]
SAMPLES = np.ones(480_000, np.float32)


@pytest.fixture(params=["grpc", "grpc, shared memory", "http", "http, shared memory"])
def client(stand_ins: Any, request: pytest.FixtureRequest) -> Iterator[Client]:
    url = getattr(stand_ins, request.param[:4])
    with connect(url, timeout_s=20, shared_memory="shared" in request.param) as client:
        yield client


@pytest.fixture(params=["grpc", "http"])
def streaming(stand_ins: Any, request: pytest.FixtureRequest) -> Iterator[Client]:
    with connect(getattr(stand_ins, request.param), timeout_s=20) as client:
        yield client


def test_transcribe(client: Client) -> None:
    transcript = client.transcribe(SAMPLES, task="translate", mode="fast")
    assert transcript.text == "480000 samples, sum 480000.000, translate, fast"
    assert transcript.segments[0].end_s == 30.0


def test_transcribe_without_samples_gets_the_servers_words(client: Client) -> None:
    with pytest.raises(RequestRejected, match="^transcribe: AUDIO: 0 samples; at least 1 is needed$"):
        client.transcribe(SAMPLES[:0])
    assert client.transcribe(SAMPLES[:1]).text.startswith("1 samples")


def test_detect(client: Client) -> None:
    found = client.detect(np.zeros(700_000, np.uint8), confidence=0.25)
    assert (found.items[0].label, found.items[0].box) == ("700000 bytes", (0.0, 1.0, 0.25, -1.0))


def test_chat_streams(client: Client) -> None:
    """CLI-08: the call for a language model streams by itself."""
    events = list(client.chat("Hi", words=2))
    assert events == [
        Delta(text="word0 "),
        Delta(text="word1 "),
        Finished(reason="length", prompt_tokens=7, completion_tokens=2),
    ]


def test_ask_streams_what_was_heard_and_seen_first(streaming: Client) -> None:
    events = list(streaming.ask(SAMPLES, b"photo", "What?", words=1))
    assert [type(event) for event in events] == [Heard, Seen, Delta, Finished]
    assert events[0] == Heard(transcript="480000 samples")


def test_ask_with_shared_memory(stand_ins: Any) -> None:
    with connect(stand_ins.grpc, shared_memory=True) as client:
        assert next(client.ask(SAMPLES, question="What?")) == Heard(transcript="480000 samples")
    with connect(stand_ins.http, shared_memory=True) as client, pytest.raises(EndpointError, match="grpc://"):
        next(client.ask(SAMPLES, question="What?"))


@pytest.mark.parametrize(("given", "count"), [({}, 4), ({"audio": SAMPLES[:9]}, 5), ({"image": b"photo"}, 5)])
def test_ask_finds_the_pipeline_for_what_is_given(streaming: Client, given: dict[str, Any], count: int) -> None:
    assert len(list(streaming.ask(**given, question="What?"))) == count


def test_the_end_may_come_with_the_last_data(streaming: Client) -> None:
    """VLL-07."""
    assert isinstance(list(streaming.chat("Hi", join_end=True))[-1], Finished)


def test_any_model_can_be_inferred(client: Client) -> None:
    """BAT-04, PYB-08 and CLI-01: a batch of one, bytes and text whole, an answer of 5.2 MB."""
    assert client.infer("echo_batched", {"X": np.arange(4, dtype=np.float32)})["Y"].tolist() == [[0, 1, 2, 3]]
    assert client.infer("echo_text", {"X": ["Zoë", b"ab\x00\x00", ""]})["Y"].tolist() == [
        "Zoë".encode(),
        b"ab\x00\x00",
        b"",
    ]
    assert client.infer("echo", {"X": SAMPLES})["Y"].sum() == 480_000
    assert client.infer("echo", {"X": SAMPLES[:0]})["Y"].shape == (0,)
    assert (
        client.infer("echo", {"X": np.ones(1_300_000, np.float32)})["Y"].nbytes == 5_200_000
    )  # gRPC's own limit: 4 MiB


def test_any_model_can_be_streamed(streaming: Client) -> None:
    """VLL-07: the stand-in ends with an empty final response, which is no part of the answer."""
    parts = list(streaming.stream("llm", {"PROMPT": "Hi"}))
    assert [set(part) for part in parts[:1]] == [{"TEXT"}]
    assert parts[-1]["COMPLETION_TOKENS"].tolist() == [3]


def test_inputs_are_checked_against_the_served_config_before_they_are_sent(streaming: Client) -> None:
    with pytest.raises(ArrayError, match="no input prompt.*Did you mean PROMPT"):
        streaming.stream("llm", {"prompt": "Hi"})
    with pytest.raises(EndpointError, match=r"llm: the model is decoupled.*stream\(\)"):
        streaming.infer("llm", {"PROMPT": "Hi"})
    with pytest.raises(ArrayError, match=r"shape \[9, 4\].*batch of 1 to 8"):
        streaming.infer("echo_batched", {"X": np.zeros((9, 4), np.float32)})


def test_a_missing_model_is_named_with_what_to_do(streaming: Client) -> None:
    missing: list[Callable[[], object]] = [
        lambda: streaming.infer("whisper", {}),
        lambda: list(streaming.stream("whisper", {})),
        lambda: streaming.wait_for_ready("whisper", limit_s=0.2),
    ]
    for call in missing:
        with pytest.raises(NotReady, match=r"whisper: not ready on .*tritonkit serve"):
            call()


def test_wait_for_ready_returns_when_all_are(streaming: Client) -> None:
    streaming.wait_for_ready("transcribe", "detect", "llm", limit_s=5)


@pytest.mark.parametrize("fail_at", [0, 2])
def test_a_failure_in_the_middle_of_an_answer_keeps_the_servers_words(streaming: Client, fail_at: int) -> None:
    """CLI-07: told to the caller, and the next stream of the same client works."""
    events = streaming.chat("Hi", fail_at=fail_at)
    assert [next(events) for _ in range(fail_at)] == [Delta(text=f"word{n} ") for n in range(fail_at)]
    with pytest.raises(RequestRejected, match=f"^llm: SAMPLING_PARAMETERS: word {fail_at}; all words; ask for less$"):
        next(events)
    assert isinstance(list(streaming.chat("Hi"))[-1], Finished)


@pytest.mark.timing
def test_an_answer_that_takes_too_long_is_a_timeout_and_the_next_request_works(client: Client) -> None:
    """CLI-08: one number of seconds, one kind of error, over gRPC and HTTP."""
    with pytest.raises(RequestTimeout, match=r"transcribe on .*: no answer within 0\.3 s"):
        client.transcribe(SAMPLES, language="sleep 1", timeout_s=0.3)
    assert client.transcribe(SAMPLES[:2]).text.startswith("2 samples")


@pytest.mark.timing
def test_a_stream_may_take_long_as_long_as_it_goes_on(streaming: Client) -> None:
    """CLI-08: the timeout is for the next event, not for the whole answer."""
    assert len(list(streaming.chat("Hi", words=8, pause_s=0.1, timeout_s=0.5))) == 9


@pytest.mark.timing
def test_a_stream_that_falls_silent_is_a_timeout(streaming: Client) -> None:
    events = streaming.chat("Hi", words=3, pause_s=1.5, timeout_s=0.3)
    with pytest.raises(RequestTimeout, match=r"no answer within 0\.3 s\."):
        next(events)


@pytest.mark.timing
def test_a_slow_reader_is_no_timeout(streaming: Client) -> None:
    events = streaming.chat("Hi", words=3, timeout_s=0.3)
    next(events)
    time.sleep(0.7)
    assert len(list(events)) == 3


def test_nobody_at_the_address_is_unreachable_at_once() -> None:
    for url in ("grpc://127.0.0.1:9", "http://127.0.0.1:9"):
        with connect(url) as client:
            for call in (lambda: client.transcribe(SAMPLES[:9]), lambda: next(client.chat("Hi"))):
                with pytest.raises(Unreachable, match=f"{url}: .*tritonkit serve"):
                    call()
            with pytest.raises(Unreachable):
                client.wait_for_ready("llm", limit_s=0.2)


@pytest.mark.timing
def test_several_threads_stream_on_one_client_at_once(streaming: Client) -> None:
    """CLI-07."""
    answers: dict[int, int] = {}

    def ask(number: int) -> None:
        answers[number] = len(list(streaming.chat("Hi", words=number, pause_s=0.1)))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(1, 9)]
    begin = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert answers == {number: number + 1 for number in range(1, 9)}
    assert time.monotonic() - begin < sum(range(1, 9)) * 0.1  # one after the other would take longer


def test_two_streams_are_read_in_turn_in_one_thread(streaming: Client) -> None:
    """CLI-07."""
    first, second = streaming.chat("Hi", words=2), streaming.chat("Hi", words=3)
    in_turn = [next(first), next(second), *first, *second]
    assert len(in_turn) == 7


def log_of(tmp_path: Path) -> Path:
    return tmp_path / "cancelled"


@pytest.mark.timing
def test_closing_an_answer_stops_the_server(streaming: Client, tmp_path: Path, wait: Callable[..., None]) -> None:
    """VLL-05."""
    log = log_of(tmp_path)
    events = streaming.chat("Hi", words=100, pause_s=0.05, log=str(log))
    next(events)
    begin = time.monotonic()
    events.close()
    assert time.monotonic() - begin < 1
    wait(log.exists, "the model did not see that the caller went away")


def test_dropping_or_breaking_out_of_an_answer_stops_the_server(
    streaming: Client, tmp_path: Path, wait: Callable[..., None]
) -> None:
    """VLL-05."""
    log = log_of(tmp_path)
    for event in streaming.chat("Hi", words=100, pause_s=0.05, log=str(log)):
        assert event == Delta(text="word0 ")
        break
    wait(log.exists, "the model did not see that the caller went away")


def test_one_cancelled_answer_does_not_touch_another(streaming: Client, tmp_path: Path) -> None:
    stopped = streaming.chat("Hi", words=100, pause_s=0.05)
    going_on = streaming.chat("Hi", words=6, pause_s=0.05, log=str(log_of(tmp_path)))
    next(stopped), next(going_on)
    stopped.close()
    assert len(list(going_on)) == 6
    assert not log_of(tmp_path).exists()


def test_closing_the_client_ends_an_answer_that_another_thread_reads(stand_ins: Any) -> None:
    client = connect(stand_ins.grpc)
    problems: list[ClientError] = []

    def read() -> None:
        try:
            list(client.chat("Hi", words=200, pause_s=0.05))
        except ClientError as error:
            problems.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    time.sleep(0.3)
    client.close()
    thread.join(5)
    assert not thread.is_alive()
    assert len(problems) == 1


# asyncio


@pytest.mark.parametrize("shared_memory", [False, True])
def test_the_asyncio_client_answers_as_the_other_does(stand_ins: Any, shared_memory: bool) -> None:
    async def everything() -> tuple[Any, ...]:
        async with connect_async(stand_ins.grpc, timeout_s=20, shared_memory=shared_memory) as client:
            await client.wait_for_ready("transcribe")
            return (
                await client.transcribe(SAMPLES),
                await client.detect(b"photo", iou=0.5),
                [event async for event in client.chat("Hi", words=1)],
                [event async for event in client.ask(SAMPLES, b"photo", "What?", words=1)],
                (await client.infer("echo_batched", {"X": SAMPLES[:4]}))["Y"].tolist(),
                [set(part) async for part in client.stream("llm", {"PROMPT": "Hi"})],
            )

    with connect(stand_ins.grpc) as client:
        assert asyncio.run(everything()) == (
            client.transcribe(SAMPLES),
            client.detect(b"photo", iou=0.5),
            list(client.chat("Hi", words=1)),
            list(client.ask(SAMPLES, b"photo", "What?", words=1)),
            client.infer("echo_batched", {"X": SAMPLES[:4]})["Y"].tolist(),
            [set(part) for part in client.stream("llm", {"PROMPT": "Hi"})],
        )


@pytest.mark.timing
def test_the_asyncio_client_raises_the_same_errors(stand_ins: Any) -> None:
    async def everything() -> None:
        async with connect_async(stand_ins.grpc, timeout_s=20) as client:
            with pytest.raises(RequestRejected, match="AUDIO: 0 samples"):
                await client.transcribe(SAMPLES[:0])
            with pytest.raises(NotReady, match="whisper"):
                await client.infer("whisper", {})
            with pytest.raises(RequestTimeout, match="no answer within 0.2 s"):
                await client.transcribe(SAMPLES[:2], language="sleep 1", timeout_s=0.2)
            with pytest.raises(RequestTimeout, match="no answer within 0.2 s"):
                await anext(client.chat("Hi", pause_s=1, timeout_s=0.2))
            with pytest.raises(RequestRejected, match="word 1"):
                _ = [event async for event in client.chat("Hi", fail_at=1)]
            with pytest.raises(ArrayError, match="Did you mean X"):
                await client.infer("echo", {"x": SAMPLES})
        async with connect_async("grpc://127.0.0.1:9") as client:
            with pytest.raises(Unreachable):
                await client.transcribe(SAMPLES[:2])

    asyncio.run(everything())


@pytest.mark.timing
def test_many_tasks_stream_at_once(stand_ins: Any) -> None:
    async def everything() -> tuple[list[int], float]:
        async with connect_async(stand_ins.grpc) as client:

            async def count(words: int) -> int:
                return len([event async for event in client.chat("Hi", words=words, pause_s=0.1)])

            begin = time.monotonic()
            counts = await asyncio.gather(*(count(words) for words in range(1, 9)))
            return list(counts), time.monotonic() - begin

    counts, seconds = asyncio.run(everything())
    assert counts == list(range(2, 10))
    assert seconds < sum(range(1, 9)) * 0.1


@pytest.mark.parametrize("way", ["close", "cancel"])
def test_closing_a_generator_or_cancelling_its_task_stops_the_server(
    stand_ins: Any, tmp_path: Path, way: str, wait: Callable[..., None]
) -> None:
    """VLL-05."""
    log = log_of(tmp_path)

    async def everything() -> None:
        async with connect_async(stand_ins.grpc, shared_memory=True) as client:
            begun = asyncio.Event()

            async def read() -> None:
                async with aclosing(client.ask(SAMPLES, words=100, pause_s=0.05, log=str(log))) as events:
                    async for event in events:
                        begun.set()
                        if way == "close" and isinstance(event, Delta):
                            return

            task = asyncio.create_task(read())
            await begun.wait()
            if way == "cancel":
                task.cancel()
            await asyncio.wait([task])
            assert task.cancelled() is (way == "cancel")

    asyncio.run(everything())
    wait(log.exists, "the model did not see that the caller went away")
