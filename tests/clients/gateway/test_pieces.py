"""Cutting long recordings, and the words of captions."""

from __future__ import annotations

import asyncio
import io
import time

import numpy as np
import pytest
import soundfile

from clients.errors import RequestRejected
from clients.gateway.captions import clock, vtt
from clients.gateway.media import bytes_of_base64, bytes_of_data_url, samples_of
from clients.gateway.pieces import LONGEST_S, pieces
from clients.gateway.problems import Problem, problem_from
from clients.gateway.rejections import is_wrong_input
from clients.gateway.sampling import sampling_options, seeds
from clients.values import Segment

RATE = 16_000


@pytest.mark.parametrize("seconds", [0, 1, 28, 28.01, 100.3])
def test_no_sample_is_lost_or_heard_twice(seconds: float) -> None:
    samples = np.random.default_rng(1).normal(size=int(seconds * RATE)).astype(np.float32)
    found = list(pieces(samples))
    assert np.array_equal(np.concatenate([piece for _, piece in found]), samples)
    assert all(len(piece) <= LONGEST_S * RATE for _, piece in found)
    starts = np.cumsum([0, *(len(piece) for _, piece in found[:-1])]) / RATE
    assert [start for start, _ in found] == pytest.approx(list(starts))


def test_a_recording_is_cut_where_it_is_quiet() -> None:
    samples = np.random.default_rng(1).normal(size=40 * RATE).astype(np.float32)
    samples[int(25.3 * RATE) : int(25.5 * RATE)] = 0
    (_, first), _ = pieces(samples)
    assert 25.3 <= len(first) / RATE <= 25.5


def test_captions_hold_no_markup_of_the_speaker() -> None:
    text = vtt((Segment(start_s=0, end_s=3661.5, text=" a <b> --> c & d"),))
    assert text == "WEBVTT\n\n00:00:00.000 --> 01:01:01.500\na &lt;b> --&gt; c &amp; d\n"
    assert clock(0.0004) == "00:00:00.000" and clock(59.9996) == "00:01:00.000"


def test_files_are_read_out_of_data_urls() -> None:
    assert bytes_of_data_url("data:image/png;base64,QUJD", "x") == b"ABC"
    assert bytes_of_base64("QUJD", "x") == b"ABC"


@pytest.mark.parametrize(
    "url",
    ["http://10.0.0.1/a.png", "file:///etc/passwd", "data:image/png,abc", "data:image/png;base64,!", "data:;base64,"],
)
def test_addresses_and_broken_data_are_refused(url: str) -> None:
    with pytest.raises(Problem, match=r"messages\.0"):
        bytes_of_data_url(url, "messages.0")


@pytest.mark.timing
def test_a_small_file_with_hours_of_silence_is_refused_before_it_is_unpacked() -> None:
    packed = io.BytesIO()
    soundfile.write(packed, np.zeros(3600 * 2000, dtype=np.int16), 2000, format="FLAC")
    assert packed.tell() < 100_000
    began = time.process_time()
    with pytest.raises(Problem, match="3,600 s in 1 channels; 600 s in 8 channels are the most"):
        asyncio.run(samples_of(packed.getvalue(), 600, "file"))
    assert time.process_time() - began < 0.1


@pytest.mark.parametrize(
    ("words", "is_wrong"),
    [
        ("AUDIO: 0 samples; at least 1 is needed; send some", True),
        ("in ensemble 'assistant', IMAGE: no picture; one is needed; send it", True),
        ("MESSAGES, PROMPT: neither is given; exactly one is needed; send it", True),
        ("llm: the engine died while it answered; send it again", False),
        ("in ensemble 'assistant', Failed to process the request(s) for model instance", False),
    ],
)
def test_whose_fault_it_is_shows_in_the_first_words(words: str, is_wrong: bool) -> None:
    assert is_wrong_input(words) is is_wrong


@pytest.mark.parametrize("where", ["", "in ensemble 'assistant', "])
def test_a_full_model_is_no_fault_of_the_request(where: str) -> None:
    problem = problem_from(RequestRejected("llm", f"{where}llm: too many requests: 32 are being answered or wait; ..."))
    assert (problem.status, problem.code) == (429, "queue_full")


@pytest.mark.parametrize(
    "words", ["in ensemble 'assistant', llm: the engine has died; ...", "llm: the engine died; ..."]
)
def test_an_engine_that_starts_anew_is_no_fault_of_the_request(words: str) -> None:
    problem = problem_from(RequestRejected("llm", words))
    assert (problem.status, problem.code) == (503, "model_not_ready")


def test_what_asks_for_nothing_is_not_sent_on() -> None:
    extra = {
        "user": "me",
        "functions": [],
        "temperature": 0.5,
        "top_k": 3,
        "response_format": {"type": "text"},
    }
    assert sampling_options(extra, max_tokens=None, stop=None) == {"temperature": 0.5, "top_k": 3}
    assert sampling_options({}, max_tokens=5, stop="a") == {"max_tokens": 5, "stop": ["a"]}


@pytest.mark.parametrize("name", ["functions", "function_call", "store", "echo", "suffix", "best_of"])
def test_what_cannot_be_honoured_is_refused_by_name(name: str) -> None:
    with pytest.raises(Problem) as caught:
        sampling_options({name: 5}, max_tokens=None, stop=None)
    assert caught.value.param == name and caught.value.status == 400


def test_every_answer_has_a_seed_of_its_own() -> None:
    assert [one["seed"] for one in seeds({"seed": 4}, 3)] == [4, 5, 6]
    assert seeds({}, 2) == [{}, {}]
