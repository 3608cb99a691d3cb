"""The decode loop on a small random checkpoint: whoever shares the batch, and whenever, the words stay the same."""

import dataclasses
import threading
import time
from concurrent.futures import Future

import numpy as np
import pytest
from whisper_job import Ask, Job
from whisper_loop import Cancelled, DecodeLoop, Stopped
from whisper_slots import Slots

WAIT_S = 60


class Loop(DecodeLoop):
    """A loop over a small checkpoint whose jobs are futures."""

    def __init__(self, small, *, slots: int = 4, encode=None, batch: int = 2) -> None:
        self.small, self.logged = small, []
        super().__init__(
            Slots(small.graphs, small.sizes, slots), small.sizes, small.tokens,
            encode=encode or small.encode, encoder_batch_size=batch, log=self.logged.append,
        )  # fmt: skip

    def __enter__(self) -> "Loop":
        self.start()
        return self

    def __exit__(self, *_) -> None:
        self.stop()

    def ask(self, ask: Ask, is_cancelled=lambda: False) -> "Future[Job]":
        future: Future[Job] = Future()

        def finish(job: Job, error: Exception | None) -> None:
            future.set_exception(error) if error else future.set_result(job)

        self.submit(Job(ask, self.small.tokens, self.small.vocabulary, is_cancelled, finish))
        return future


def random_ask(small, rng: np.random.Generator, *, frames: int | None = None, mode: str | None = None) -> Ask:
    """A recording of random sounds, as whisper_features and whisper_encoder would hand it over."""
    frames = int(rng.integers(1, 9000)) if frames is None else frames
    mode = mode or str(rng.choice(["exact", "fast"]))
    mel = rng.standard_normal((80, frames)).astype(np.float32)
    starts = np.arange(0, max(frames, 1), 2500) if mode == "fast" else np.array([0])
    spans = np.stack([starts, np.minimum(frames - starts, 2500 if mode == "fast" else 3000)], axis=1)
    windows = np.zeros((min(len(spans), 2), 80, 3000), np.float32)
    for window, (start, length) in zip(windows, spans, strict=False):
        window[:, :length] = mel[:, start : start + length]
    language = str(rng.choice(["", "fr", "en"])) or None
    task = str(rng.choice(["transcribe", "translate"]))
    return Ask(features=small.encode(windows), mel=mel, spans=spans, language=language, task=task, mode=mode)


def words_of(job: Job) -> tuple:
    return job.language, job.transcript(), [(s.start, s.end, s.tokens) for s in job.segments()]


def alone(small, ask: Ask) -> tuple:
    with Loop(small, slots=1) as loop:
        return words_of(loop.ask(ask).result(WAIT_S))


@pytest.mark.parametrize("seed", range(4))
def test_tokens_are_the_same_whoever_shares_the_batch_and_whenever_they_come(multilingual, seed: int) -> None:
    rng = np.random.default_rng(seed)
    asks = [random_ask(multilingual, rng) for _ in range(6)]
    expected = [alone(multilingual, ask) for ask in asks]
    assert len({words for words in map(str, expected)}) == len(asks)  # they do say different things
    for slots, batch in ((3, 1), (8, 4)):
        order = rng.permutation(len(asks))
        with Loop(multilingual, slots=slots, batch=batch) as loop:
            futures = {}
            for i in order:
                futures[i] = loop.ask(asks[i])
                time.sleep(float(rng.choice([0.0, 0.0, 0.01, 0.03])))
            for i, future in futures.items():
                assert words_of(future.result(WAIT_S)) == expected[i], f"recording {i} with {slots} slots"


def test_a_short_recording_does_not_wait_for_a_long_one(multilingual) -> None:
    rng = np.random.default_rng(0)
    long = random_ask(multilingual, rng, frames=120_000, mode="fast")
    short = random_ask(multilingual, rng, frames=500, mode="exact")
    loop = Loop(multilingual, slots=4)
    first = loop.ask(long)
    said_when_short_was_done: list[int] = []
    second = loop.ask(short)
    second.add_done_callback(lambda _: said_when_short_was_done.append(len(loop._jobs)))
    with loop:
        second.result(WAIT_S)
        assert said_when_short_was_done == [1]  # the long one was still there
        assert not first.done()
        first.result(WAIT_S)


def test_one_recording_never_takes_the_slots_kept_for_others(multilingual) -> None:
    seen: list[int] = []
    loop = Loop(multilingual, slots=8, batch=8)
    step = loop._slots.step

    def watched(tokens):
        seen.append(len(tokens))
        return step(tokens)

    loop._slots.step = watched
    with loop:
        loop.ask(random_ask(multilingual, np.random.default_rng(0), frames=60_000, mode="fast")).result(WAIT_S)
    assert max(seen) == 6


def test_no_frames_are_no_words(multilingual) -> None:
    rng = np.random.default_rng(0)
    with Loop(multilingual) as loop:
        for mode in ("exact", "fast"):
            job = loop.ask(random_ask(multilingual, rng, frames=0, mode=mode)).result(WAIT_S)
            assert (job.transcript(), job.segments_json()) == ("", "[]")
            assert job.language in multilingual.tokens.languages


def test_a_cancelled_recording_leaves_and_the_others_stay(multilingual) -> None:
    rng = np.random.default_rng(0)
    long = random_ask(multilingual, rng, frames=120_000, mode="fast")
    other = random_ask(multilingual, rng, frames=9000, mode="exact")
    gone = threading.Event()
    with Loop(multilingual) as loop:
        cancelled, stays = loop.ask(long, gone.is_set), loop.ask(other)
        gone.set()
        with pytest.raises(Cancelled):
            cancelled.result(WAIT_S)
        assert words_of(stays.result(WAIT_S)) == alone(multilingual, other)


def test_an_error_of_the_encoder_costs_only_the_recording_that_asked(multilingual) -> None:
    rng = np.random.default_rng(0)
    good, bad = (random_ask(multilingual, rng, frames=20_000, mode="fast") for _ in range(2))
    bad.mel[:] = 99.0

    def encode(mel: np.ndarray) -> np.ndarray:
        if mel.max() == 99.0:
            raise RuntimeError("whisper_encoder: out of memory")
        return multilingual.encode(mel)

    with Loop(multilingual, encode=encode) as loop:
        first, second = loop.ask(good), loop.ask(bad)
        with pytest.raises(RuntimeError, match="out of memory"):
            second.result(WAIT_S)
        assert words_of(first.result(WAIT_S)) == alone(multilingual, good)


def test_an_error_of_the_decoder_fails_its_rows_and_the_next_request_works(multilingual) -> None:
    rng = np.random.default_rng(0)
    ask = random_ask(multilingual, rng, frames=2000, mode="fast")
    loop = Loop(multilingual)
    step, calls = loop._slots.step, []

    def broken(tokens):
        calls.append(tokens)
        if len(calls) == 2:
            raise RuntimeError("bad step")
        return step(tokens)

    loop._slots.step = broken
    with loop:
        with pytest.raises(RuntimeError, match="bad step"):
            loop.ask(ask).result(WAIT_S)
        assert words_of(loop.ask(ask).result(WAIT_S)) == alone(multilingual, ask)


def test_features_that_the_graph_refuses_fail_that_recording_alone(multilingual) -> None:
    rng = np.random.default_rng(0)
    good = random_ask(multilingual, rng, frames=2000, mode="fast")
    bad = dataclasses.replace(good, features=np.zeros((1, 3, 3), np.float32))
    with Loop(multilingual) as loop:
        first, second = loop.ask(good), loop.ask(bad)
        with pytest.raises(Exception, match="[Ii]nvalid|dimension"):
            second.result(WAIT_S)
        assert words_of(first.result(WAIT_S)) == alone(multilingual, good)


def test_a_response_that_cannot_be_sent_is_logged_and_costs_nobody_else_a_row(multilingual) -> None:
    rng = np.random.default_rng(0)
    ask = random_ask(multilingual, rng, frames=2000, mode="fast")

    def finish(job: Job, error: Exception | None) -> None:
        raise RuntimeError("the pipe is broken")

    with Loop(multilingual) as loop:
        loop.submit(Job(ask, multilingual.tokens, multilingual.vocabulary, lambda: False, finish))
        assert words_of(loop.ask(ask).result(WAIT_S)) == alone(multilingual, ask)
    assert len(loop.logged) == 1 and "the pipe is broken" in loop.logged[0]


def test_stopping_ends_the_thread_and_fails_what_is_under_way(multilingual) -> None:
    rng = np.random.default_rng(0)
    with Loop(multilingual) as loop:
        future = loop.ask(random_ask(multilingual, rng, frames=300_000, mode="fast"))
    with pytest.raises(Stopped):
        future.result(WAIT_S)
    assert not loop._thread.is_alive()
