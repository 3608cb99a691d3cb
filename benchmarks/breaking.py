"""The faults, one function each: break it, wait until what must happen has happened, say in a few words what did.

In: a running `System`. Each leaves it whole again. What becomes of the requests meanwhile is counted elsewhere.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.system import System
from benchmarks.traffic import RECORDING
from clients import connect

WITHIN_S = 400.0
SHM_MIB, SPARE_MIB = 1024, 160
PAUSE_S = 1.6
DIED = "its process has died; loading it anew"
RESTARTED = "the server ended by itself; starting it again"
CLIENT = """
import sys
from clients import connect
url, recording = sys.argv[1:]
with connect(url, shared_memory=True) as client:
    for event in client.ask(recording, question="What do you hear?", max_tokens=1500, ignore_eos=True):
        print(type(event).__name__, flush=True)
"""
LONG = b'{"model": "llm", "prompt": "Hello", "max_tokens": 1900, "min_tokens": 1900, "n": 4, "stream": true}'


def wait_until(is_so: Callable[[], object], otherwise: str, within_s: float = WITHIN_S) -> None:
    end = time.monotonic() + within_s
    while not is_so():
        if time.monotonic() > end:
            raise SystemExit(f"{otherwise} within {within_s:g} s")
        time.sleep(0.05)


def killing(*models: str) -> Callable[[System], str]:
    """Kills these models' processes, all at once."""

    def kill(system: System) -> str:
        restarts = system.serve.said.count(RESTARTED)
        old = {model: system.model(model) for model in models}
        for process in old.values():
            process.kill()

        def is_back() -> bool:
            found = {model: system.find_model(model) for model in models}
            return all(found[model] not in (None, old[model]) and system.is_ready(model) for model in models)

        wait_until(is_back, f"{', '.join(models)}: not back")
        return (
            "Triton aborted, and was started again" if system.serve.said.count(RESTARTED) > restarts else "loaded anew"
        )

    return kill


def pause_a_model(system: System) -> str:
    """A model's process that is stopped for longer than a second, as on a machine that has no time for it."""
    restarts, deaths = system.serve.said.count(RESTARTED), system.serve.said.count(DIED)
    process = system.model("yolo_preprocess")
    process.suspend()
    time.sleep(PAUSE_S)
    process.resume()
    time.sleep(5)  # longer than `tritonkit serve` takes to see a death
    if system.serve.said.count(RESTARTED) > restarts:
        return "Triton ended, and was started again"
    return "loaded anew" if system.serve.said.count(DIED) > deaths else "it went on"


def kill_engine(system: System) -> str:
    """The process that vLLM runs its engine in, below that of the model."""
    engine = system.engine()
    engine.kill()
    wait_until(lambda: system.find_engine() not in (None, engine), "no new engine")
    return "the model started another engine"


def kill_server(system: System) -> str:
    """`tritonkit serve` starts it again on the same ports."""
    system.triton().kill()
    wait_until(lambda: health(system) == 503, "the gateway's health does not say so")
    wait_until(lambda: health(system) == 200, "the gateway's health stays bad")
    return "/health 503, then 200; started again on the same ports"


def kill_client(system: System) -> str:
    """One that streams an answer about a recording in shared memory."""
    command = [sys.executable, "-c", CLIENT, f"grpc://{system.grpc}", str(RECORDING)]
    client = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert client.stdout
    while "Delta" not in client.stdout.readline():
        assert client.poll() is None, "the client ended before it was killed"
    own = f"tritonkit-client-{os.stat('/proc/self/ns/pid').st_ino}-{client.pid}-"
    client.kill()
    client.wait()
    began = time.monotonic()
    wait_until(lambda: not any(one.name.startswith(own) for one in Path("/dev/shm").iterdir()), "its memory stays")

    def next_one() -> bool:
        with connect(f"grpc://{system.grpc}", shared_memory=True) as another:
            another.transcribe(RECORDING)
        return not system.regions(own)

    wait_until(next_one, "the server keeps its memory")
    return f"the next client freed its memory in the server, {time.monotonic() - began:.1f} s after the kill"


def load_a_broken_file(system: System) -> str:
    """A model's code is replaced by what does not run, and loaded; then the right one again."""
    file = system.repository / "yolo_postprocess" / "1" / "model.py"
    good = file.read_text()
    file.write_text("raise ValueError('broken')\n")
    try:
        refused = system.manage("/v2/repository/models/yolo_postprocess/load")
        time.sleep(2)
    finally:
        file.write_text(good)
    loaded = system.manage("/v2/repository/models/yolo_postprocess/load")
    if (refused, loaded) != (400, 200):
        raise SystemExit(f"loading the broken file: {refused}, the good one: {loaded}; 400 and 200 are expected")
    return "refused; the old one went on answering"


def build_on_a_full_disk(system: System) -> str:
    """The served repository is built anew where no space is left."""
    filler = system.repository.parent / "filler"
    before = {one: one.stat().st_mtime_ns for one in system.repository.rglob("*") if "__pycache__" not in one.parts}
    fill(filler)
    try:
        # For a GPU, or nothing would need to be written.
        command = [sys.executable, "-m", "tritonkit", "build", "--gpu", "L4", "--out", str(system.repository)]
        built = subprocess.run(command, capture_output=True, text=True)
    finally:
        filler.unlink()
    after = {one: one.stat().st_mtime_ns for one in system.repository.rglob("*") if "__pycache__" not in one.parts}
    if built.returncode != 1 or "No space left on device" not in built.stderr or before != after:
        raise SystemExit(f"building on a full disk: {built.returncode} {built.stderr}; same files: {before == after}")
    return "refused; the repository is as it was"


def fill_shared_memory(system: System) -> str:
    """Not a byte is left in /dev/shm for ten seconds."""
    filler = Path("/dev/shm/filler")
    fill(filler)
    try:
        time.sleep(10)
    finally:
        filler.unlink()
    return "full for 10 s"


def fill(file: Path) -> None:
    """Write until nothing more fits."""
    with file.open("wb", buffering=0) as filler:
        for size in (2**20, 2**12):
            with contextlib.suppress(OSError):
                while filler.write(b"x" * size):
                    pass


def read_slowly(system: System) -> str:
    """Four callers that ask for a long answer and read nothing of it for twenty seconds."""
    host, _, port = system.gateway.removeprefix("http://").partition(":")
    memory = system.front_memory()
    with contextlib.ExitStack() as stack:
        for _ in range(4):
            caller = stack.enter_context(socket.socket())
            caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            caller.connect((host, int(port)))
            head = f"POST /v1/completions HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
            caller.sendall(f"{head}Content-Length: {len(LONG)}\r\n\r\n".encode() + LONG)
        time.sleep(20)
        grown = system.front_memory() - memory
    return f"the gateway's memory grew by {grown / 2**20:.0f} MiB"


def clock(folder: Path) -> dict[str, str]:
    """The environment of programs whose wall clock `jump_the_clock` can set. It takes a C compiler."""
    built = folder / "clock.so"
    source = Path(__file__).with_name("clock.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", str(built), str(source)], check=True)
    set_clock(folder, 0)
    return {"LD_PRELOAD": str(built), "CLOCK_OFFSET_FILE": str(folder / "clock")}


def set_clock(folder: Path, seconds: int) -> None:
    """Let the programs' wall clock be so far ahead of ours."""
    with (folder / "clock").open("r+b" if (folder / "clock").exists() else "wb") as file:
        file.write(struct.pack("q", seconds))


def jump_the_clock(system: System) -> str:
    """An hour forward, then two back, then right again, as where somebody sets the time of a machine."""
    seen = []
    for hours in (1, -1, 0):
        set_clock(system.folder, hours * 3600)
        time.sleep(8)
        seen.append(round((system.date() - time.time()) / 3600))
    if seen != [1, -1, 0]:
        raise SystemExit(f"the gateway's clock was {seen} hours off, [1, -1, 0] was wanted")
    return "an hour forward, two back, one forward, 8 s each"


def end_the_gateway(system: System) -> str:
    """SIGTERM: what is in flight ends, then it is gone; a new one takes its port."""
    system.front.process.send_signal(signal.SIGTERM)
    status = system.front.process.wait(WITHIN_S)
    system.start_gateway()
    return f"ended with status {status}"


def end_the_server(system: System) -> str:
    """SIGTERM: what is in flight ends, then it is gone; a new one takes its ports."""
    system.serve.process.send_signal(signal.SIGTERM)
    status = system.serve.process.wait(WITHIN_S)
    system.start_again()
    return f"ended with status {status}"


def health(system: System) -> int:
    """The status of the gateway's own health."""
    connection = http.client.HTTPConnection(system.gateway.removeprefix("http://"), timeout=10)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status
    except OSError:
        return 0
    finally:
        connection.close()
