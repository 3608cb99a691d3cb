"""Reading the server's log."""

from __future__ import annotations

from pathlib import Path

import pytest

from embedded.log import LogReader, parse_line

HARMLESS = [
    'W1129 18:01:07.383228 2283 pinned_memory_manager.cc:273] "Unable to allocate pinned system memory, pinned memory '
    'pool will not be available: CUDA driver version is insufficient for CUDA runtime version"',
    'I1129 18:01:07.383330 2283 cuda_memory_manager.cc:117] "CUDA memory pool disabled"',
    'E1129 18:01:07.383471 2283 server.cc:241] "CudaDriverHelper has not been initialized."',
    'W1129 19:00:05.513498 380 pinned_memory_manager.cc:170] "failed to allocate pinned system memory: no pinned '
    'memory pool, falling back to non-pinned system memory"',
    "Error: Failed to initialize NVML",
    'W1129 18:01:08.751394 2283 metrics.cc:798] "DCGM unable to start: DCGM initialization error"',
    'E1129 18:01:08.751394 2283 ensemble_scheduler.cc:1633] "unable to create stream for assistant: CUDA driver '
    'version is insufficient for CUDA runtime version"',
]


@pytest.mark.parametrize("raw", HARMLESS)
def test_what_a_machine_without_gpu_says_is_harmless(raw: str) -> None:
    assert parse_line(raw).is_harmless


@pytest.mark.parametrize("raw", HARMLESS)
def test_a_line_that_says_more_is_not(raw: str) -> None:
    assert not parse_line(raw + " and more").is_harmless


def test_words_lose_their_quotes_and_escapes() -> None:
    line = parse_line(r'E1129 18:08:31.814731 7033 model.cc:642] "failed: \"x\"\n\nAt:\n  /m/model.py(1): <module>\n"')
    assert (line.severity, line.source) == ("E", "model.cc")
    assert line.text == 'failed: "x"\n\nAt:\n  /m/model.py(1): <module>\n'


def test_what_models_print_has_no_severity() -> None:
    line = parse_line("Loading weights")
    assert (line.severity, line.text) == ("", "Loading weights")


def test_lines_are_read_once_and_whole(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"one\ntw")
    reader = LogReader(path)
    with path.open("ab") as log:
        assert [line.raw for line in reader.new_lines()] == ["one"]
        log.write("o ä\n\xff".encode("latin-1"))
        log.flush()
        assert [line.raw for line in reader.new_lines()] == ["two \ufffd"]
        assert reader.new_lines() == []
    reader.close()
