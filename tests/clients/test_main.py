"""The commands on the memory transport; test_commands_on_server.py runs them as a person does."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from typer.testing import CliRunner, Result

from clients import Client, MemoryTransport, RequestRejected
from clients import __main__ as commands

SEGMENTS = [{"start": 0, "end": 1, "text": " Hi."}]
FOUND = {"width": 4, "height": 3, "detections": [{"label": "dog", "score": 0.5, "box": [0, 1, 2, 3]}]}


class Server:
    """Models that note their inputs; `fail` makes the next call of a model fail."""

    def __init__(self) -> None:
        self.sent: list[Mapping[str, np.ndarray]] = []
        self.timeout_s = 0.0
        self.url = ""

    def transcribe(self, inputs: Mapping[str, np.ndarray]) -> Mapping[str, Any]:
        self.sent.append(inputs)
        return {"TRANSCRIPT": " Hi.", "SEGMENTS": json.dumps(SEGMENTS), "DETECTED_LANGUAGE": "en"}

    def detect(self, inputs: Mapping[str, np.ndarray]) -> Mapping[str, Any]:
        self.sent.append(inputs)
        return {"DETECTIONS": json.dumps(FOUND)}

    def answer(self, inputs: Mapping[str, np.ndarray]) -> Iterator[Mapping[str, Any]]:
        self.sent.append(inputs)
        if b"fail" in inputs.get("QUESTION", inputs.get("MESSAGES"))[0]:
            raise RequestRejected("llm", "top_q: not a sampling parameter")
        if "AUDIO" in inputs:
            yield {"TRANSCRIPT": " Hi."}
        yield {"TEXT": "Yes"}
        yield {"FINISH_REASON": "stop", "PROMPT_TOKENS": np.array([7]), "COMPLETION_TOKENS": np.array([1])}

    def connect(self, url: str, *, timeout_s: float, shared_memory: bool = False) -> Client:
        self.url, self.timeout_s = url, timeout_s
        streams = ("llm", "assistant", "assistant_audio", "assistant_image", "assistant_text")
        models = {"transcribe": self.transcribe, "detect": self.detect, **dict.fromkeys(streams, self.answer)}
        return Client(MemoryTransport(models), timeout_s=timeout_s)

    def sampling(self) -> dict[str, Any]:
        return json.loads(self.sent[-1]["SAMPLING_PARAMETERS"][0])


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    server = Server()
    monkeypatch.setattr(commands, "connect", server.connect)
    monkeypatch.delenv("TRITONKIT_URL", raising=False)
    return server


@pytest.fixture
def speech(tmp_path: Path) -> str:
    path = tmp_path / "speech.wav"
    soundfile.write(path, np.zeros(8000, np.float32), 8000)
    return str(path)


def call(*arguments: str, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(commands.app, arguments, input=stdin)


def test_transcribe_writes_the_text_and_nothing_else(server: Server, speech: str) -> None:
    result = call("transcribe", speech, "--language", "en", "--mode", "fast", "--task", "translate")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "Hi.\n", "")
    sent = server.sent[0]
    assert [sent[name][0] for name in ("LANGUAGE", "MODE", "TASK")] == [b"en", b"fast", b"translate"]
    assert sent["AUDIO"].shape == (16000,)


def test_transcribe_reads_stdin_and_writes_json_segments_and_subtitles(server: Server, speech: str) -> None:
    data = Path(speech).read_bytes()
    document = json.loads(call("transcribe", "-", "--json", stdin=data).stdout)
    assert (document["file"], document["text"], document["segments"][0]["end_s"]) == ("-", " Hi.", 1.0)
    assert call("transcribe", "-", "--segments", stdin=data).stdout == "[00:00.00 --> 00:01.00] Hi.\n"
    assert call("transcribe", "-", "--srt", stdin=data).stdout.startswith("1\n00:00:00,000 --> 00:00:01,000\nHi.\n")


def test_a_problem_with_one_file_is_said_and_the_others_get_their_result(
    server: Server, speech: str, tmp_path: Path
) -> None:
    broken, missing = tmp_path / "broken.wav", str(tmp_path / "missing.wav")
    broken.write_bytes(b"no sound")
    result = call("transcribe", str(broken), speech, missing)
    assert result.exit_code == 1
    assert result.stdout == f"{speech}:\nHi.\n"
    first, second = result.stderr.splitlines()
    assert first.startswith(f"{broken}: no sound file") and missing in second


def test_detect_writes_a_table_or_json(server: Server) -> None:
    rows = [line.split() for line in call("detect", "-", stdin=b"photo").stdout.splitlines()]
    assert ["dog", "0.50", "0", "1", "2", "3"] in rows
    document = json.loads(call("detect", "-", "--json", "--iou", "0.4", stdin=b"photo").stdout)
    assert document["items"] == [{"label": "dog", "score": 0.5, "box": [0.0, 1.0, 2.0, 3.0]}]
    assert server.sent[-1]["IOU"].tolist() == [np.float32(0.4)]


def test_ask_streams_text_for_people(server: Server, speech: str) -> None:
    result = call("ask", "--audio", speech, "What?")
    assert (result.exit_code, result.stdout) == (0, "heard: Hi.\nYes\n")


def test_ask_streams_json_lines_for_machines(server: Server, speech: str) -> None:
    lines = call("ask", "--audio", speech, "What?", "--json").stdout.splitlines()
    assert [json.loads(line)["event"] for line in lines] == ["heard", "delta", "finished"]


def test_ask_passes_every_sampling_option_on(server: Server) -> None:
    options = ["--max-tokens", "9", "--temperature", "0.5", "--seed", "3", "--param", "top_p=0.9"]
    assert call("ask", "What?", *options, "--param", 'stop=["a=b"]').exit_code == 0
    assert server.sampling() == {"max_tokens": 9, "temperature": 0.5, "seed": 3, "top_p": 0.9, "stop": ["a=b"]}


def test_a_param_may_say_what_an_option_says_too(server: Server) -> None:
    call("ask", "What?", "--param", "max_tokens=3")
    assert server.sampling() == {"max_tokens": 3}


@pytest.mark.parametrize("param", ["top_p", "top_p=", "=1", "stop=a", "timeout_s=1", "audio=1", "messages=[]"])
def test_a_param_that_is_none_is_wrong_usage(server: Server, param: str) -> None:
    for command in ("ask", "chat"):
        result = call(command, "What?", "--param", param)
        assert (result.exit_code, server.sent) == (2, [])
        assert "name=JSON" in " ".join(result.stderr.replace("│", " ").split())


def test_only_one_input_can_be_stdin(server: Server) -> None:
    result = call("ask", "--audio", "-", "--image", "-", "What?", stdin=b"photo")
    assert (result.exit_code, result.stdout) == (2, "")


def test_the_question_can_be_stdin(server: Server) -> None:
    assert call("ask", "-", stdin="What?").exit_code == 0
    assert server.sent[0]["QUESTION"].tolist() == [b"What?"]


def test_chat_takes_a_message_or_stdin_and_a_system_message(server: Server) -> None:
    assert call("chat", "Hi", "--system", "Be brief.").stdout == "Yes\n"
    assert [one["role"] for one in json.loads(server.sent[-1]["MESSAGES"][0])] == ["system", "user"]
    assert call("chat", stdin="Hello").stdout == "Yes\n"
    assert json.loads(server.sent[-1]["MESSAGES"][0]) == [{"role": "user", "content": "Hello"}]


def converse(monkeypatch: pytest.MonkeyPatch, *lines: str) -> Result:
    waiting = list(lines)

    def read(prompt: str) -> str:
        if not waiting:
            raise EOFError
        return waiting.pop(0)

    monkeypatch.setattr("builtins.input", read)
    monkeypatch.setattr("typer.testing._NamedTextIOWrapper.isatty", lambda self: True, raising=False)
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda self: True, raising=False)
    return call("chat")


def test_a_conversation_remembers_what_was_said(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    result = converse(monkeypatch, "Hi", " ", "And?")
    assert (result.exit_code, result.stdout) == (0, "Yes\nYes\n")
    contents = [one["content"] for one in json.loads(server.sent[-1]["MESSAGES"][0])]
    assert contents == ["Hi", "Yes", "And?"]


def test_a_conversation_goes_on_after_a_problem_and_forgets_that_turn(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = converse(monkeypatch, "fail", "Hi")
    assert (result.exit_code, result.stdout) == (0, "Yes\n")
    assert "top_q: not a sampling parameter" in result.stderr
    assert [one["content"] for one in json.loads(server.sent[-1]["MESSAGES"][0])] == ["Hi"]


def test_a_refusal_is_said_in_the_servers_words(server: Server) -> None:
    result = call("ask", "fail")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "llm: top_q: not a sampling parameter\n"


def test_the_address_and_the_timeout_come_from_options_or_the_environment(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    call("chat", "Hi")
    assert (server.url, server.timeout_s) == ("grpc://127.0.0.1:8001", 300.0)
    monkeypatch.setenv("TRITONKIT_URL", "http://triton:9000")
    call("chat", "Hi", "--timeout", "5")
    assert (server.url, server.timeout_s) == ("http://triton:9000", 5.0)
    call("chat", "Hi", "--url", "grpc://other")
    assert server.url == "grpc://other"


def test_a_wrong_address_is_a_problem_not_a_traceback() -> None:
    result = call("chat", "Hi", "--url", "triton:8001")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "grpc://host:port or http://host:port is expected" in result.stderr


def test_help_names_the_four_commands() -> None:
    assert all(name in call("--help").stdout for name in ("ask", "transcribe", "detect", "chat"))
