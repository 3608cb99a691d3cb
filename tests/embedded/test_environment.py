"""The environment and the command line of the server process."""

from __future__ import annotations

from pathlib import Path

from embedded.environment import server_environment
from embedded.flags import server_flags
from embedded.wheel import Wheel

WHEEL = Wheel(
    tritonserver=Path("/w/bin/tritonserver"),
    python_backend=Path("/w/python"),
    stub=Path("/w/stub"),
    caches=Path("/w/caches"),
    library_folders=(Path("/python/lib"), Path("/w/libs")),
)


def test_the_interpreters_own_libraries_come_first() -> None:
    environment = server_environment({"LD_LIBRARY_PATH": "/mine:/w/libs"}, wheel=WHEEL, python=Path("/venv/bin/python"))
    assert environment["LD_LIBRARY_PATH"] == "/python/lib:/w/libs:/mine"


def test_the_python_of_the_environment_comes_first_on_the_path() -> None:
    environment = server_environment({"PATH": "/usr/bin:/bin"}, wheel=WHEEL, python=Path("/venv/bin/python"))
    assert environment["PATH"] == "/venv/bin:/usr/bin:/bin"


def test_text_is_utf_8_and_nothing_phones_home() -> None:
    environment = server_environment({"LANG": "C", "OTHER": "kept"}, wheel=WHEEL, python=Path("/venv/bin/python"))
    expected = {"LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "PYTHONUTF8": "1", "ORT_DISABLE_TELEMETRY": "1"}
    assert expected.items() <= environment.items()
    assert environment["OTHER"] == "kept"


def test_freed_memory_is_kept_for_the_next_request_unless_the_caller_says_otherwise() -> None:
    environment = server_environment({"MALLOC_TRIM_THRESHOLD_": "1"}, wheel=WHEEL, python=Path("/p/python"))
    assert environment["MALLOC_TRIM_THRESHOLD_"] == "1"
    assert int(environment["MALLOC_MMAP_THRESHOLD_"]) == 32 * 2**20
    assert environment["OPENBLAS_NUM_THREADS"] == "1"


def test_threads_are_limited_when_asked_and_only_then() -> None:
    base = {"OMP_NUM_THREADS": "7"}
    assert server_environment(base, wheel=WHEEL, python=Path("/p/python"))["OMP_NUM_THREADS"] == "7"
    limited = server_environment(base, wheel=WHEEL, python=Path("/p/python"), cpu_threads=2)
    assert limited["OMP_NUM_THREADS"] == limited["OPENBLAS_NUM_THREADS"] == "2"


def flags(load: list[str] | None) -> tuple[str, ...]:
    return server_flags(
        repository=Path("/repository"),
        backends=Path("/backends"),
        caches=Path("/caches"),
        host="127.0.0.1",
        ports={"http": 1, "grpc": 2, "metrics": 3},
        load=load,
        shm_prefix="mine-",
        exit_timeout_s=5,
    )


def test_every_endpoint_listens_on_the_given_address() -> None:
    given = flags(None)
    for endpoint, port in {"http": 1, "grpc": 2, "metrics": 3}.items():
        assert f"--{endpoint}-address=127.0.0.1" in given
        assert f"--{endpoint}-port={port}" in given


def test_only_named_models_are_loaded() -> None:
    assert not any("model-control-mode" in flag for flag in flags(None))
    assert flags(["a", "b"])[-7:-3] == (
        "--metrics-port=3",
        "--model-control-mode=explicit",
        "--load-model=a",
        "--load-model=b",
    )
