"""Results as text for people and as JSON for machines. Pure, except for the two functions that write."""

import json
import sys
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from clients.values import Delta, Detections, Event, Finished, Heard, Seen, Segment, Transcript


def json_line(value: Any, **about: Any) -> str:
    """One value as one line of JSON: what it is about first, then its fields as the Python API names them."""
    return json.dumps({**about, **asdict(value)}, ensure_ascii=False)


def event_line(event: Event) -> str:
    """One event as one line of JSON; "event" is heard, seen, delta or finished. Logprobs only if asked for."""
    about = {"event": type(event).__name__.lower()}
    if isinstance(event, Delta) and not event.logprobs:
        return json.dumps({**about, "text": event.text}, ensure_ascii=False)
    return json_line(event, **about)


def segment_lines(transcript: Transcript) -> list[str]:
    """The segments with their times, one a line."""
    return [f"[{_clock(one.start_s)} --> {_clock(one.end_s)}] {one.text.strip()}" for one in transcript.segments]


def srt(segments: Iterable[Segment]) -> str:
    """The segments as a SubRip file."""
    entries = [
        f"{number}\n{_srt_clock(one.start_s)} --> {_srt_clock(one.end_s)}\n{one.text.strip()}\n"
        for number, one in enumerate(segments, start=1)
    ]
    return "\n".join(entries)


def summary(detections: Detections) -> str:
    """What is in the picture in a few words, such as "2 person, 1 dog"."""
    counts: dict[str, int] = {}
    for one in detections.items:
        counts[one.label] = counts.get(one.label, 0) + 1
    return ", ".join(f"{count} {label}" for label, count in counts.items()) or "nothing it knows"


def write_detections(name: str, detections: Detections) -> None:
    """Writes a table of the objects to stdout."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    size = f"{detections.width} x {detections.height} pixels"
    if not detections.items:
        print(f"{name}, {size}: nothing it knows")
        return
    table = Table(title=f"{name}, {size}", title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("object")
    for heading in ("score", "x1", "y1", "x2", "y2"):
        table.add_column(heading, justify="right")
    for one in detections.items:
        table.add_row(one.label, f"{one.score:.2f}", *(f"{edge:.0f}" for edge in one.box))
    Console(highlight=False, markup=False).print(table)


def write_events(events: Iterable[Event], *, as_json: bool) -> str:
    """Writes events to stdout as they come; the answer as a whole comes back."""
    pieces: list[str] = []
    for event in events:
        if isinstance(event, Delta):
            pieces.append(event.text)
        sys.stdout.write(f"{event_line(event)}\n" if as_json else _plain(event))
        sys.stdout.flush()
    return "".join(pieces)


def _plain(event: Event) -> str:
    match event:
        case Heard(transcript=transcript):
            return f"heard: {transcript.strip()}\n"
        case Seen(detections=detections):
            return f"seen: {summary(detections)}\n"
        case Delta(text=text):
            return text
        case Finished():
            return "\n"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(seconds, 60)
    return f"{int(minutes):02d}:{rest:05.2f}"


def _srt_clock(seconds: float) -> str:
    milliseconds = round(seconds * 1000)
    minutes, rest = divmod(milliseconds, 60_000)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02d}:{minutes:02d}:{rest // 1000:02d},{rest % 1000:03d}"
