"""One worker's day, told once on the real broker and examined by several tests."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import Callable
from queue import Queue
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest
from websockets.asyncio.client import connect

from deploy.monitoring.collector import Collector
from deploy.monitoring.spans import Span
from worker.errors import BrokerError
from worker.fanout import serve_results
from worker.member import work
from worker.metrics import Metrics
from worker.settings import Settings

pytestmark = pytest.mark.server
IN_FLIGHT = 4
TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PARENT = f"00-{TRACE}-{SPAN}-01".encode()


def question(**fields: Any) -> bytes:
    return json.dumps({"prompt": "x", "words": 1, **fields}).encode()


def settings(brokers: str, url: str, **others: Any) -> Settings:
    names = {"inbound": "day.in", "outbound": "day.out", "dead_letter": "day.dead", "group": "day"}
    given = {**names, "brokers": brokers, "url": url, "pipeline": "llm", "in_flight": IN_FLIGHT, "commit_s": 0.1}
    return Settings(**{**given, "session_timeout_s": 3.0, **others})


SENT = [
    (b"ordered", question(words=1, pause_s=0.4), []),
    (b"ordered", question(words=2), []),
    (b"ordered", question(words=3), []),
    (b"traced", question(), [("traceparent", PARENT), ("tenant", b"a")]),
    (None, question(), []),
    (b"no json", b"{", []),
    (b"refused", question(fail_at=0), []),
    (b"path", b'{"messages": "["}', []),
    *((b"many%d" % number, question(pause_s=0.05), [("traceparent", PARENT)]) for number in range(30)),
]
GOOD, BAD = 35, 3


@pytest.fixture(scope="module")
def day(topics: Any, llm_url: str, within: Callable) -> SimpleNamespace:
    """What was seen while one worker did all that was sent, and what is on the topics afterwards."""
    seen = SimpleNamespace(most_in_flight=0, lags=[])

    async def live() -> None:
        await topics.create("day.in", "day.out", "day.dead")
        await topics.send("day.in", SENT)
        metrics, until, stop_results = Metrics(), asyncio.Event(), asyncio.Event()
        open_now: set[str] = set()

        def watch(step: str, message: Any) -> None:
            if step == "taken":
                open_now.add(message.source)
                seen.most_in_flight = max(seen.most_in_flight, len(open_now))
            elif step == "sent":
                open_now.discard(message.source)
                seen.lags.append(lag(metrics))

        address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        serving = asyncio.create_task(
            serve_results(
                topics.brokers,
                "day.out",
                host="127.0.0.1",
                port=0,
                origins=["https://good.example"],
                said=lambda line: address.set_result(line.split()[1]),
                until=stop_results,
            )
        )
        url = await asyncio.wait_for(address, 60)
        async with connect(f"{url}/?key=traced") as socket:
            seen.foreign_page = await refused(url, "https://bad.example")
            working = asyncio.create_task(work(settings(topics.brokers, llm_url), metrics, watch=watch, until=until))
            seen.frame = json.loads(await asyncio.wait_for(socket.recv(), 60))
            seen.out = await topics.read("day.out", lambda found: len(found) >= GOOD)
            seen.dead = await topics.read("day.dead", lambda found: len(found) >= BAD)
            await until_true(lambda: lag(metrics) == 0)
            until.set()
            await working
            stop_results.set()
        await serving
        port = metrics.serve(0, "127.0.0.1")
        seen.metrics = await asyncio.to_thread(
            lambda: urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5).read().decode()
        )

    within(live(), 240)
    return seen


def lag(metrics: Metrics) -> float:
    samples = [sample.value for family in metrics.lag.collect() for sample in family.samples]
    return sum(samples) if samples else -1


async def until_true(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not is_so():
            await asyncio.sleep(0.02)


async def refused(url: str, origin: str) -> int:
    from websockets.exceptions import InvalidStatus

    try:
        async with connect(url, origin=origin):  # type: ignore[arg-type]
            return 101
    except InvalidStatus as error:
        return error.response.status_code


def test_every_message_has_one_result_or_one_dead_letter(day: SimpleNamespace) -> None:
    assert (len(day.out), len(day.dead)) == (GOOD, BAD)
    assert {json.loads(one.value)["text"] for one in day.out if one.key.startswith(b"many")} == {"word0 "}


def test_dead_letters_have_the_message_and_the_reason(day: SimpleNamespace) -> None:
    reasons = {one.key: dict(one.headers)["tritonkit-reason"].decode() for one in day.dead}
    assert "no JSON" in reasons[b"no json"] and "JSON is needed" in reasons[b"path"]
    assert "SAMPLING_PARAMETERS: word 0" in reasons[b"refused"], "the model's own words"
    assert {one.key: one.value for one in day.dead}[b"no json"] == b"{"


def test_messages_of_one_key_are_answered_in_their_order(day: SimpleNamespace) -> None:
    counts = [json.loads(one.value)["completion_tokens"] for one in day.out if one.key == b"ordered"]
    assert counts == [1, 2, 3]


def test_headers_and_trace_context_go_along(day: SimpleNamespace) -> None:
    (traced,) = [one for one in day.out if one.key == b"traced"]
    headers = dict(traced.headers)
    assert headers["traceparent"] == PARENT and headers["tenant"] == b"a"
    assert headers["tritonkit-source"].startswith(b"day.in/")


def test_request_to_the_server_is_part_of_the_trace_of_the_message(day: SimpleNamespace, llm_traces: Collector) -> None:
    """Of one message: Triton 2.51 leaves some out that came over gRPC (benchmarks/lost_traces.py)."""
    spans: Queue[Span] = Queue()

    def collect() -> None:
        for trace in llm_traces.traces(0.2):
            for one in trace:
                spans.put(one)

    Thread(target=collect, daemon=True).start()
    # The request's own span comes last, once its stream has ended.
    found = next(one for one in iter(lambda: spans.get(timeout=30), None) if one.name == "InferRequest")
    assert (found.trace, found.parent) == (TRACE, SPAN)


def test_message_without_a_key_gets_one_that_is_its_own(day: SimpleNamespace) -> None:
    (one,) = [one for one in day.out if one.key.startswith(b"day.in/")]
    assert dict(one.headers)["tritonkit-source"] == one.key


def test_no_more_are_taken_than_may_be_in_flight_and_all_that_may_are(day: SimpleNamespace) -> None:
    assert day.most_in_flight == IN_FLIGHT


def test_lag_falls_to_nothing(day: SimpleNamespace) -> None:
    measured = [one for one in day.lags if one >= 0]
    assert max(measured) > 20 and measured[-1] < max(measured)


def test_metrics_count_the_outcomes(day: SimpleNamespace) -> None:
    assert f'tritonkit_worker_messages_total{{outcome="result"}} {GOOD}.0' in day.metrics
    assert f'tritonkit_worker_messages_total{{outcome="dead_letter"}} {BAD}.0' in day.metrics
    assert 'tritonkit_worker_lag{partition="0",topic="day.in"} 0.0' in day.metrics


def test_subscriber_of_a_key_gets_its_result_and_a_strange_page_nothing(day: SimpleNamespace) -> None:
    assert day.frame["key"] == "traced" and day.frame["result"]["text"] == "word0 "
    assert day.foreign_page == 403


def test_topic_that_is_not_there_is_named(topics: Any, llm_url: str, within: Callable) -> None:
    async def one() -> None:
        await topics.create("there.in")
        await work(
            settings(topics.brokers, llm_url, inbound="there.in", outbound="nowhere"), Metrics(), until=asyncio.Event()
        )

    with pytest.raises(BrokerError, match=r"nowhere: not on .*Create it first"):
        within(one(), 30)


def test_broker_that_is_not_there_is_named(llm_url: str, within: Callable) -> None:
    with pytest.raises(BrokerError, match=r"127\.0\.0\.1:9.*Is the broker there"):
        within(work(settings("127.0.0.1:9", llm_url), Metrics(), until=asyncio.Event()), 30)
