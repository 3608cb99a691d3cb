"""The model `llm` on the real server, a real vLLM engine behind it."""

import http.client
import itertools
import json
import os
import threading
import time

import psutil
import pytest
from llm_serving import Llm, Response, chat, engine_pids, joined

pytestmark = pytest.mark.server

QUESTION = "What do you hear and see?"
MESSAGES = chat("Go forward 10 meters.", "4 person, 1 bus", QUESTION)
ANSWER = 'I heard "Go forward 10 meters." and I see 4 people and 1 bus.'
PROMPT = '<s>Heard: "Go forward 10 meters."\nSeen: 4 person, 1 bus\nQuestion: What do you hear and see?\nAnswer:\n'
LONG = json.dumps({"ignore_eos": True, "max_tokens": 1500})


def sampling(**values: object) -> str:
    return json.dumps(values)


def the_error(responses: list[Response]) -> str:
    assert responses[-1].error is not None, f"an error was expected, got {responses}"
    return responses[-1].error


def assert_serves(llm: Llm) -> None:
    assert joined(llm.ask(MESSAGES=MESSAGES)) == ANSWER


def test_deltas_join_to_the_answer_and_the_last_response_says_how_it_ended(llm_server: Llm) -> None:
    responses = llm_server.ask(MESSAGES=MESSAGES)
    assert joined(responses) == ANSWER
    first, *deltas, last = responses
    assert all(set(delta.values) == {"TEXT"} for delta in (first, *deltas))
    assert 0 < len(first.values["TEXT"]) < len(ANSWER), "the first piece waits for no other"
    assert last.values["FINISH_REASON"] == "stop"
    assert last.values["COMPLETION_TOKENS"] >= len(responses)
    assert 20 < last.values["PROMPT_TOKENS"] < 80


@pytest.mark.skipif(len(os.sched_getaffinity(0)) == 1, reason="this machine has one core")
def test_one_core_is_left_for_others_and_only_by_the_engine(llm_server: Llm) -> None:
    assert_serves(llm_server)
    available = frozenset(os.sched_getaffinity(0))
    engines = engine_pids()
    stubs = [psutil.Process(pid).ppid() for pid in engines]
    assert engines and {frozenset(os.sched_getaffinity(pid)) for pid in engines} == {available - {min(available)}}
    threads = [int(thread) for pid in stubs for thread in os.listdir(f"/proc/{pid}/task")]
    assert {frozenset(os.sched_getaffinity(thread)) for thread in threads} == {frozenset(available)}


@pytest.mark.timing
def test_tokens_that_come_within_a_gap_make_one_response(llm_server: Llm) -> None:
    """A token takes this model a twentieth of the gap."""
    responses = llm_server.ask(MESSAGES=MESSAGES, SAMPLING_PARAMETERS=sampling(ignore_eos=True, max_tokens=200))
    assert responses[-1].values["COMPLETION_TOKENS"] == 200
    assert len(responses) < 100


def test_transcript_and_detections_come_through_before_any_text(llm_server: Llm) -> None:
    transcript, detections = "Go forward 10 meters. \u00e9\u4e16", '{"detections": []}'
    first, *rest = llm_server.ask(MESSAGES=MESSAGES, TRANSCRIPT=transcript, DETECTIONS=detections)
    assert first.values == {"TRANSCRIPT": transcript, "DETECTIONS": detections}
    assert joined(rest) == ANSWER
    assert not any({"TRANSCRIPT", "DETECTIONS"} & set(response.values) for response in rest)


def test_only_what_was_given_is_passed_through(llm_server: Llm) -> None:
    first, *_ = llm_server.ask(MESSAGES=MESSAGES, TRANSCRIPT="")
    assert first.values == {"TRANSCRIPT": ""}


def test_a_prompt_is_taken_as_it_is_whether_or_not_it_brings_its_first_token(llm_server: Llm) -> None:
    by_messages = llm_server.ask(MESSAGES=MESSAGES)[-1].values["PROMPT_TOKENS"]
    for prompt in (PROMPT, PROMPT.removeprefix("<s>")):
        responses = llm_server.ask(PROMPT=prompt)
        assert joined(responses) == ANSWER
        assert responses[-1].values["PROMPT_TOKENS"] == by_messages


def test_a_seed_makes_random_answers_repeatable(llm_server: Llm) -> None:
    def answer(seed: int) -> str:
        wild = sampling(temperature=2.0, seed=seed, max_tokens=30, ignore_eos=True)
        return joined(llm_server.ask(PROMPT="the", SAMPLING_PARAMETERS=wild))

    assert answer(1) == answer(1)
    assert len({answer(seed) for seed in range(4)}) > 1, "other seeds must give other answers"


def test_a_stop_text_ends_the_answer_and_is_left_out(llm_server: Llm) -> None:
    responses = llm_server.ask(MESSAGES=MESSAGES, SAMPLING_PARAMETERS=sampling(stop=[" and I see"]))
    assert joined(responses) == ANSWER.split(" and I see")[0]
    assert responses[-1].values["FINISH_REASON"] == "stop"


def test_max_tokens_cuts_the_answer_and_says_so(llm_server: Llm) -> None:
    last = llm_server.ask(MESSAGES=MESSAGES, SAMPLING_PARAMETERS=sampling(max_tokens=3))[-1]
    assert (last.values["FINISH_REASON"], last.values["COMPLETION_TOKENS"]) == ("length", 3)


def test_structured_outputs_bind_the_answer(llm_server: Llm) -> None:
    choice = sampling(structured_outputs={"choice": ["yes", "no"]})
    assert joined(llm_server.ask(MESSAGES=MESSAGES, SAMPLING_PARAMETERS=choice)) in ("yes", "no")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ('{"temprature": 0.5}', ("temprature", "temperature")),
        ('{"max_new_tokens": 5}', ("max_new_tokens", "max_tokens")),
        ('{"temperature": 3}', ("temperature", "[0, 2]")),
        ('{"n": 2}', ("n is 2",)),
        ('{"stop_token_ids": [4000]}', ("stop_token_ids", "4000", "2047")),
        ('{"structured_outputs": {"regex": "((("}}', ("regex",)),
        ("[1]", ("JSON list",)),
        ("{", ("no JSON",)),
        ('{"\\ud800": 1}', (r"unknown \ud800",)),
    ],
)
def test_wrong_sampling_parameters_are_refused_by_name(llm_server: Llm, values: str, words: tuple[str, ...]) -> None:
    error = the_error(llm_server.ask(MESSAGES=MESSAGES, SAMPLING_PARAMETERS=values))
    assert "SAMPLING_PARAMETERS: " in error
    for word in words:
        assert word in error
    assert_serves(llm_server)


def test_a_prompt_longer_than_the_context_is_refused_with_both_numbers(llm_server: Llm) -> None:
    allowed = llm_server.engine["max_model_len"] - 1
    responses = llm_server.ask(MESSAGES=chat(None, None, "word " * 20_000), TRANSCRIPT="x")
    assert responses[0].values == {"TRANSCRIPT": "x"}, "what was heard comes all the same"
    error = the_error(responses)
    assert error.startswith("MESSAGES: ") and f"at most {allowed} are allowed" in error and "max_model_len" in error
    assert the_error(llm_server.ask(PROMPT="word " * 20_000)).startswith("PROMPT: ")
    assert_serves(llm_server)


@pytest.mark.parametrize("name", ["MESSAGES", "PROMPT", "SAMPLING_PARAMETERS", "TRANSCRIPT", "DETECTIONS"])
def test_bytes_that_are_no_utf8_are_refused_by_the_input_s_name(llm_server: Llm, name: str) -> None:
    others = {"MESSAGES": MESSAGES} if name not in ("MESSAGES", "PROMPT") else {}
    error = the_error(llm_server.ask(**others, **{name: b"caf\xe9"}))
    assert error.startswith(f"{name}: byte 3 is 0xe9")
    assert_serves(llm_server)


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ({}, "neither is given"),
        ({"MESSAGES": MESSAGES, "PROMPT": "x"}, "both are given"),
        ({"MESSAGES": "{}"}, "MESSAGES: a JSON dict"),
        ({"MESSAGES": "[]"}, "MESSAGES: an empty list"),
        ({"MESSAGES": "hello"}, "MESSAGES: no JSON"),
        ({"MESSAGES": '[{"role": "user"}]'}, "MESSAGES: message 0"),
        ({"MESSAGES": '[{"role": "system", "content": "x"}]'}, "MESSAGES: the model's chat template refuses"),
        ({"PROMPT": ""}, "PROMPT: empty"),
    ],
)
def test_what_is_no_prompt_is_refused(llm_server: Llm, texts: dict[str, str], words: str) -> None:
    if "MESSAGES" not in texts and "PROMPT" not in texts:
        texts = {"TRANSCRIPT": "x"}
    assert words in the_error(llm_server.ask(**texts))
    assert_serves(llm_server)


@pytest.mark.timing
def test_sixteen_requests_at_once_take_much_less_than_sixteen_times_one(llm_server: Llm) -> None:
    """Continuous batching: every step of the engine advances all requests by a token."""
    once = sampling(ignore_eos=True, max_tokens=120)

    def seconds(requests: int) -> float:
        streams = [llm_server.stream() for _ in range(requests)]
        started = time.monotonic()
        for stream in streams:
            stream.send(MESSAGES=MESSAGES, SAMPLING_PARAMETERS=once)
        for stream in streams:
            assert list(stream.receive())[-1].values["COMPLETION_TOKENS"] == 120
        took = time.monotonic() - started
        for stream in streams:
            stream.close()
        return took

    seconds(1)  # the first request of a shape is slower
    ratio = seconds(16) / min(seconds(1) for _ in range(3))
    print(f"16 at once took {ratio:.1f} times as long as one")
    assert ratio < 8


@pytest.mark.timing
def test_generation_stops_when_grpc_clients_go_away(llm_server: Llm) -> None:
    """VLL-05, with the real engine."""
    one_takes_s = seconds_of_a_long_answer(llm_server)
    gone = [llm_server.stream() for _ in range(llm_server.engine["max_num_seqs"])]
    for stream in gone:
        stream.send(MESSAGES=MESSAGES, SAMPLING_PARAMETERS=LONG)
    for stream in gone:
        next(stream.receive())  # each is being answered
    leaving = [threading.Thread(target=stream.close, kwargs={"cancel": True}) for stream in gone]
    for thread in leaving:
        thread.start()
    for thread in leaving:
        thread.join()
    assert_answers_at_once(llm_server, one_takes_s)


@pytest.mark.timing
def test_generation_stops_when_http_clients_close_their_connection(llm_server: Llm) -> None:
    """VLL-05, with the real engine."""
    one_takes_s = seconds_of_a_long_answer(llm_server)
    body = json.dumps({"MESSAGES": MESSAGES, "SAMPLING_PARAMETERS": LONG})
    gone = [http.client.HTTPConnection(llm_server.http) for _ in range(llm_server.engine["max_num_seqs"])]
    for connection in gone:
        connection.request("POST", "/v2/models/llm/generate_stream", body)
    answers = [connection.getresponse() for connection in gone]
    for answer in answers:
        assert answer.readline().startswith(b"data:")  # each is being answered
    for connection, answer in zip(gone, answers, strict=True):
        answer.close()
        connection.close()
    assert_answers_at_once(llm_server, one_takes_s)


def seconds_of_a_long_answer(llm: Llm) -> float:
    started = time.monotonic()
    last = llm.ask(MESSAGES=MESSAGES, SAMPLING_PARAMETERS=LONG)[-1]
    assert last.values["COMPLETION_TOKENS"] == 1500
    return time.monotonic() - started


def assert_answers_at_once(llm: Llm, one_takes_s: float) -> None:
    """All places of the engine (`max_num_seqs`) were taken: the next must wait unless those before it really ended."""
    started = time.monotonic()
    assert_serves(llm)
    waited_s = time.monotonic() - started
    print(f"a long answer takes {one_takes_s:.2f} s; after those that were given up the next took {waited_s:.2f} s")
    assert waited_s < one_takes_s / 2


def test_a_broken_lifeline_stops_a_request_that_comes_later(llm_server: Llm) -> None:
    """It may still be on its way through an ensemble when its caller goes."""
    limit, tries = time.monotonic() + 10, itertools.count()
    while True:
        tried = next(tries)
        name = f"a-name-that-nobody-guesses-{tried}"  # a new one: a request that is answered ends its lifeline
        holder = llm_server.stream()
        holder.send(LIFELINE=name)
        holder.responses.get(timeout=10)  # it is held
        holder.close(cancel=True)
        time.sleep(0.1 * tried)  # the model hears of it a moment later
        with llm_server.stream() as stream:
            stream.send(request_id=name, MESSAGES=MESSAGES)
            responses = list(stream.receive())
        if responses[-1].error is not None:
            break
        assert time.monotonic() < limit, "the request is answered"
    assert "cancelled" in the_error(responses)
    assert_serves(llm_server)


def test_a_lifeline_ends_with_its_request(llm_server: Llm) -> None:
    with llm_server.stream() as holder, llm_server.stream() as stream:
        holder.send(LIFELINE="another-name-that-nobody-guesses")
        holder.responses.get(timeout=10)
        stream.send(request_id="another-name-that-nobody-guesses", MESSAGES=MESSAGES)
        assert joined(list(stream.receive())) == ANSWER
        assert list(holder.receive(timeout_s=10)) == []


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ({"LIFELINE": "short"}, "LIFELINE: 5 characters"),
        ({"LIFELINE": "long" * 100}, "LIFELINE: 400 characters"),
        ({"LIFELINE": "a-name-that-nobody-guesses", "PROMPT": "Hello"}, "LIFELINE: PROMPT beside it"),
    ],
)
def test_what_is_no_lifeline_is_refused(llm_server: Llm, texts: dict[str, str], words: str) -> None:
    assert words in the_error(llm_server.ask(**texts))


def test_the_likelihood_of_each_token_is_told(llm_server: Llm) -> None:
    """CLI-10."""
    *deltas, last = llm_server.ask(MESSAGES=MESSAGES, SAMPLING_PARAMETERS=sampling(logprobs=2))
    told = [json.loads(each.values.get("LOGPROBS", "[]")) for each in (*deltas, last)]
    entries = [one for some in told for one in some]
    assert "".join(one["token"] for one in entries).strip() == ANSWER
    assert len(entries) == last.values["COMPLETION_TOKENS"] - 1, "the token that ends the answer is no part of it"
    # However many tokens a response has gathered, it tells of those of its text; the last may have none left.
    for each, some in zip((*deltas, last), told, strict=True):
        assert "".join(one["token"] for one in some).strip() == each.values["TEXT"].strip()
    for one in entries:
        assert one["top"][0]["token"] == one["token"] and len(one["top"]) == 2  # greedy: the likeliest is taken
        assert 0 >= one["logprob"] == one["top"][0]["logprob"] > one["top"][1]["logprob"]


def test_more_likelihoods_than_the_engine_gives_are_refused(llm_server: Llm) -> None:
    assert "SAMPLING_PARAMETERS" in the_error(llm_server.ask(PROMPT="Hi", SAMPLING_PARAMETERS=sampling(logprobs=2000)))
