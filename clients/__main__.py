"""The commands that call a server: ask, transcribe, detect, chat.

Results go to stdout, problems to stderr. Exit status: 0 good, 1 problems, 2 wrong usage, 130 after Ctrl-C, which also
stops the server's work.
"""

import contextlib
import functools
import inspect
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clients.defaults import DEFAULT_URL, MAX_TOKENS, TIMEOUT_S
from clients.errors import ClientError
from clients.gateway.command import gateway
from clients.show import json_line, segment_lines, srt, write_detections, write_events

if TYPE_CHECKING:
    from clients.client import Client

app = typer.Typer(no_args_is_help=True)
app.command()(gateway)

STDIN = "-"
Url = Annotated[str, typer.Option(envvar="TRITONKIT_URL", help="grpc://host:port or http://host:port")]
Timeout = Annotated[float, typer.Option("--timeout", help="Longest wait in seconds for the next part of an answer")]
Json = Annotated[bool, typer.Option("--json", help="One JSON object a line, for machines")]
Shared = Annotated[bool, typer.Option("--shared-memory", help="Pass big inputs through /dev/shm to a server here")]
Language = Annotated[str | None, typer.Option(help="Language spoken, such as en; found if left out")]
Task = Annotated[str | None, typer.Option(help="transcribe, or translate to English")]
Mode = Annotated[str | None, typer.Option(help="exact, or fast with all windows at once")]
Confidence = Annotated[float | None, typer.Option(help="Least score of an object, 0 to 1")]
Iou = Annotated[float | None, typer.Option(help="How much two boxes may overlap, 0 to 1")]
MaxTokens = Annotated[int, typer.Option(help="Longest answer, in tokens")]
Temperature = Annotated[float | None, typer.Option(help="0 always takes the likeliest token")]
Seed = Annotated[int | None, typer.Option(help="The same seed gives the same answer")]
Param = Annotated[list[str] | None, typer.Option(help="Any sampling parameter, as name=JSON; may be repeated")]


def reports_problems(command: Callable[..., None]) -> Callable[..., None]:
    """The command with its ways to end: a problem said on stderr, Ctrl-C, SIGTERM, a reader that went away."""

    @functools.wraps(command)
    def run(*arguments: Any, **options: Any) -> None:
        try:
            with _sigterm_as_exception():
                command(*arguments, **options)
                sys.stdout.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except KeyboardInterrupt:
            raise typer.Exit(130) from None
        except (ClientError, OSError) as error:
            raise _problem(error) from error

    return run


def connect(url: str, *, timeout_s: float, shared_memory: bool = False) -> "Client":
    """The client; loaded only now, so that help comes at once."""
    from clients import connection

    return connection.connect(url, timeout_s=timeout_s, shared_memory=shared_memory)


@app.command()
@reports_problems
def transcribe(
    files: Annotated[list[str], typer.Argument(help="Sound files (wav, flac, mp3, ogg, ...); - reads stdin")],
    segments: Annotated[bool, typer.Option("--segments", help="With times, one segment a line")] = False,
    as_srt: Annotated[bool, typer.Option("--srt", help="As subtitles (SubRip)")] = False,
    language: Language = None,
    task: Task = None,
    mode: Mode = None,
    url: Url = DEFAULT_URL,
    timeout_s: Timeout = TIMEOUT_S,
    shared_memory: Shared = False,
    as_json: Json = False,
) -> None:
    """Write down what is said in recordings."""

    def write(client: "Client", name: str) -> None:
        options: dict[str, Any] = {"task": task or "transcribe", "mode": mode or "exact"}
        transcript = client.transcribe(_source(name), language=language, **options)
        if as_json:
            print(json_line(transcript, file=name))
        elif as_srt:
            print(srt(transcript.segments))
        else:
            title = [f"{name}:"] if len(files) > 1 else []
            print("\n".join(title + (segment_lines(transcript) if segments else [transcript.text.strip()])))

    with connect(url, timeout_s=timeout_s, shared_memory=shared_memory) as client:
        _for_each(files, lambda name: write(client, name))


@app.command()
@reports_problems
def detect(
    files: Annotated[list[str], typer.Argument(help="Image files (jpeg, png, webp, ...); - reads stdin")],
    confidence: Confidence = None,
    iou: Iou = None,
    url: Url = DEFAULT_URL,
    timeout_s: Timeout = TIMEOUT_S,
    shared_memory: Shared = False,
    as_json: Json = False,
) -> None:
    """Find the objects in pictures."""

    def write(client: "Client", name: str) -> None:
        detections = client.detect(_source(name), confidence=confidence, iou=iou)
        if as_json:
            print(json_line(detections, file=name))
        else:
            write_detections(name, detections)

    with connect(url, timeout_s=timeout_s, shared_memory=shared_memory) as client:
        _for_each(files, lambda name: write(client, name))


@app.command()
@reports_problems
def ask(
    question: Annotated[str, typer.Argument(help="The question; - reads stdin")] = "",
    audio: Annotated[str | None, typer.Option(help="Sound file; - reads stdin")] = None,
    image: Annotated[str | None, typer.Option(help="Image file; - reads stdin")] = None,
    language: Language = None,
    task: Task = None,
    mode: Mode = None,
    confidence: Confidence = None,
    iou: Iou = None,
    max_tokens: MaxTokens = MAX_TOKENS,
    temperature: Temperature = None,
    seed: Seed = None,
    param: Param = None,
    url: Url = DEFAULT_URL,
    timeout_s: Timeout = TIMEOUT_S,
    shared_memory: Shared = False,
    as_json: Json = False,
) -> None:
    """Ask about a recording, a picture, both or neither; the answer is streamed."""
    if [question, audio, image].count(STDIN) > 1:
        raise typer.BadParameter("only one of question, --audio and --image can be - (stdin)")
    sampling = _sampling(max_tokens, temperature, seed, param)
    about: dict[str, Any] = {"language": language, "task": task, "mode": mode, "confidence": confidence, "iou": iou}
    words = sys.stdin.read() if question == STDIN else question
    heard, seen = (None if name is None else _source(name) for name in (audio, image))
    with (
        connect(url, timeout_s=timeout_s, shared_memory=shared_memory) as client,
        contextlib.closing(client.ask(heard, seen, words, **about, **sampling)) as events,
    ):
        write_events(events, as_json=as_json)


@app.command()
@reports_problems
def chat(
    message: Annotated[str | None, typer.Argument(help="The message; - reads stdin; none: a conversation")] = None,
    system: Annotated[str | None, typer.Option(help="Instructions that stand before the first message")] = None,
    max_tokens: MaxTokens = MAX_TOKENS,
    temperature: Temperature = None,
    seed: Seed = None,
    param: Param = None,
    url: Url = DEFAULT_URL,
    timeout_s: Timeout = TIMEOUT_S,
    as_json: Json = False,
) -> None:
    """Talk to the language model itself; the answer is streamed."""
    options = _sampling(max_tokens, temperature, seed, param)
    messages = [] if system is None else [{"role": "system", "content": system}]
    with connect(url, timeout_s=timeout_s) as client:
        if message is None and sys.stdin.isatty():
            _converse(client, messages, options, as_json)
            return
        words = sys.stdin.read() if message in (None, STDIN) else message
        _answer(client, [*messages, {"role": "user", "content": words}], options, as_json)


@contextlib.contextmanager
def _sigterm_as_exception() -> Iterator[None]:
    """Lets SIGTERM end the block like Ctrl-C does, so that everything is cleaned up."""
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _converse(client: "Client", messages: list[dict[str, Any]], options: dict[str, Any], as_json: bool) -> None:
    """Messages from the terminal until its end; Ctrl-C while an answer comes stops that answer only."""
    for line in _lines("> "):
        turn = [*messages, {"role": "user", "content": line}]
        try:
            answer = _answer(client, turn, options, as_json)
        except KeyboardInterrupt:
            print("\n(stopped)", file=sys.stderr)
        except ClientError as error:
            print(error, file=sys.stderr)
        else:
            messages = [*turn, {"role": "assistant", "content": answer}]


def _lines(prompt: str) -> Iterator[str]:
    import readline  # noqa: F401 (editing and history for input())

    with contextlib.suppress(EOFError):
        while True:
            line = input(prompt)
            if line.strip():
                yield line


def _answer(client: "Client", messages: list[dict[str, Any]], options: dict[str, Any], as_json: bool) -> str:
    with contextlib.closing(client.chat(messages, **options)) as events:
        return write_events(events, as_json=as_json)


def _for_each(files: list[str], write: Callable[[str], None]) -> None:
    """Writes the result of each file; a problem with one is said, and the others still get theirs."""
    failed = 0
    for name in files:
        try:
            write(name)
        except BrokenPipeError:
            raise
        except (ClientError, OSError) as error:
            failed += 1
            print(error if name in str(error) else f"{name}: {error}", file=sys.stderr)
    if failed:
        raise typer.Exit(1)


def _source(name: str) -> Path | bytes:
    return sys.stdin.buffer.read() if name == STDIN else Path(name)


def _sampling(max_tokens: int, temperature: float | None, seed: int | None, param: list[str] | None) -> dict[str, Any]:
    own = {"max_tokens": max_tokens, "temperature": temperature, "seed": seed}
    return {**own, **dict(_named(one) for one in param or ())}


def _named(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    try:
        if not name or not equals or name in _not_sampling():
            raise ValueError("no name of a sampling parameter")
        return name, json.loads(value)
    except ValueError as error:
        hint = f"""--param {text}: {error}; name=JSON is expected, such as top_p=0.9 or 'stop=["\\n"]'"""
        raise typer.BadParameter(hint) from error


def _not_sampling() -> set[str]:
    """Names that the calls themselves have."""
    from clients.assistant import ask_request

    return {"timeout_s", "messages", *inspect.signature(ask_request).parameters} - {"max_tokens"}


def _problem(error: Any) -> typer.Exit:
    print(error, file=sys.stderr)
    return typer.Exit(1)


if __name__ == "__main__":
    app()
