import json

import pytest

from clients.show import event_line, json_line, segment_lines, srt, summary, write_detections, write_events
from clients.values import Delta, Detection, Detections, Finished, Heard, Seen, Segment, Transcript

SEGMENTS = (
    Segment(start_s=0.0, end_s=2.5, text=" Hello."),
    Segment(start_s=3661.0004, end_s=3662.9996, text=" Bye."),
)
DOGS = Detections(
    width=640,
    height=480,
    items=(
        Detection(label="dog", score=0.912, box=(1.2, 2.0, 3.0, 4.0)),
        Detection(label="cat", score=0.5, box=(0.0, 0.0, 9.0, 9.0)),
        Detection(label="dog", score=0.4, box=(0.0, 0.0, 9.0, 9.0)),
    ),
)
EVENTS = (
    Heard(transcript=" Hi there."),
    Seen(detections=DOGS),
    Delta(text="Two "),
    Delta(text="dogs."),
    Finished(reason="stop", prompt_tokens=9, completion_tokens=2),
)


def test_srt_rounds_to_milliseconds_and_carries_over() -> None:
    assert srt(SEGMENTS) == ("1\n00:00:00,000 --> 00:00:02,500\nHello.\n\n2\n01:01:01,000 --> 01:01:03,000\nBye.\n")


def test_segment_lines_show_minutes_and_seconds() -> None:
    lines = segment_lines(Transcript(text="", segments=SEGMENTS, language="en"))
    assert lines == ["[00:00.00 --> 00:02.50] Hello.", "[61:01.00 --> 61:03.00] Bye."]


def test_summary_counts_labels() -> None:
    assert summary(DOGS) == "2 dog, 1 cat"
    assert summary(Detections(width=1, height=1, items=())) == "nothing it knows"


def test_json_line_says_what_it_is_about_and_keeps_other_alphabets() -> None:
    line = json_line(Transcript(text="Zoë", segments=(), language="en"), file="a.wav")
    assert line == '{"file": "a.wav", "text": "Zoë", "segments": [], "language": "en"}'


def test_event_lines_are_json_with_the_kind_of_event() -> None:
    documents = [json.loads(event_line(event)) for event in EVENTS]
    assert [one["event"] for one in documents] == ["heard", "seen", "delta", "delta", "finished"]
    assert documents[1]["detections"]["items"][0]["box"] == [1.2, 2.0, 3.0, 4.0]
    assert documents[4] == {"event": "finished", "reason": "stop", "prompt_tokens": 9, "completion_tokens": 2}


def test_write_events_streams_text_and_gives_the_answer_back(capsys: pytest.CaptureFixture[str]) -> None:
    assert write_events(EVENTS, as_json=False) == "Two dogs."
    assert capsys.readouterr().out == "heard: Hi there.\nseen: 2 dog, 1 cat\nTwo dogs.\n"


def test_write_events_writes_each_event_before_it_takes_the_next(capsys: pytest.CaptureFixture[str]) -> None:
    def events():
        yield Delta(text="first")
        assert capsys.readouterr().out == "first"
        yield Delta(text="second")

    assert write_events(events(), as_json=False) == "firstsecond"


def test_write_detections_writes_a_row_for_each(capsys: pytest.CaptureFixture[str]) -> None:
    write_detections("photo.jpg", DOGS)
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["photo.jpg,", "640", "x", "480", "pixels"] in lines
    assert ["dog", "0.91", "1", "2", "3", "4"] in lines
    assert lines.count(["dog", "0.40", "0", "0", "9", "9"]) == 1


def test_write_detections_says_so_when_there_is_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    write_detections("photo.jpg", Detections(width=2, height=1, items=()))
    assert capsys.readouterr().out == "photo.jpg, 2 x 1 pixels: nothing it knows\n"
