import json

from worker.fanout import Subscribers


def frames(queue: object) -> list:
    found = []
    while not queue.empty():  # type: ignore[attr-defined]
        found.append(queue.get_nowait())  # type: ignore[attr-defined]
    return found


def test_each_gets_what_it_listens_to_and_a_result_sent_twice_once() -> None:
    subscribers = Subscribers()
    everything, one = subscribers.add(None), subscribers.add("b")
    for key, source in (("a", "t/0/1"), ("b", "t/0/2"), ("b", "t/0/2")):
        subscribers.publish(key, source, {"text": key})
    assert [json.loads(frame)["key"] for frame in frames(everything)] == ["a", "b"]
    assert frames(one) == ['{"key": "b", "source": "t/0/2", "result": {"text": "b"}}']


def test_slow_subscriber_gets_what_it_had_and_an_end_and_holds_up_nobody() -> None:
    subscribers = Subscribers(waiting=2)
    slow, quick = subscribers.add(None), subscribers.add(None)
    seen = []
    for number in range(4):
        subscribers.publish("k", str(number), number)
        seen += frames(quick)
    assert [json.loads(frame)["result"] if frame else None for frame in frames(slow)] == [0, 1, None]
    assert len(seen) == 4 and len(subscribers) == 1


def test_sources_are_forgotten_at_last_so_that_memory_is_bounded() -> None:
    subscribers = Subscribers(remembered=2)
    queue = subscribers.add(None)
    for source in ("a", "b", "c", "a"):
        subscribers.publish("k", source, 0)
    assert len(frames(queue)) == 4
