"""The program: `python3 -m starter run --entry assistant -- tritonserver ...`, and `check` for health probes.

Exit status: 0 when it was told to end, 1 if a model does not load or dies again and again, the server's own if that
ended by itself, 2 for wrong usage.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from starter.errors import StarterError
from starter.keys import INFERENCE_KEY, MANAGEMENT_HEADER, MANAGEMENT_KEY, closed, inference_flags
from starter.order import read_repository, start_order
from starter.revive import Reviver
from starter.server import Server
from starter.start import compile_served_code, start_models

RESTRICTED = "model-repository,shared-memory,trace,logging"
LOOK_EVERY_S = 0.3


def parser() -> argparse.ArgumentParser:
    """The options of both commands."""
    made = argparse.ArgumentParser(prog="starter", description=(__doc__ or "").splitlines()[0])
    commands = made.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="start a server and its models, the language model last")
    check = commands.add_parser("check", help="exit status 0 if the entry models can be asked")
    for one in (run, check):
        told = "model that must answer; may be repeated, or stand in TRITONKIT_ENTRY with commas between"
        one.add_argument("--entry", action="append", default=[], help=told)
        one.add_argument("--http", default="127.0.0.1:8000", help="host:port of the server's HTTP endpoint")
    run.add_argument("--repository", type=Path, default=Path("/models"))
    run.add_argument("--config-name", default="", help="as the server's --model-config-name")
    run.add_argument("--timeout-s", type=float, default=300.0, help="until the server answers")
    run.add_argument("--load-timeout-s", type=float, default=1800.0, help="for one model")
    run.add_argument("server", nargs=argparse.REMAINDER, help="-- and the server's command")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    given = parser().parse_args(arguments)
    given.entry = given.entry or [name for name in os.environ.get("TRITONKIT_ENTRY", "").split(",") if name]
    if given.command == "check":
        server = Server(address=given.http)
        bad = [name for name in given.entry if not server.is_ready(name)] or (
            [] if server.is_live() else ["the server"]
        )
        print(f"not ready: {', '.join(bad)}" if bad else "ready", file=sys.stderr if bad else sys.stdout)
        return 1 if bad else 0
    command = given.server[1:] if given.server[:1] == ["--"] else given.server
    if not command:
        parser().error("the server's command is missing: run ... -- tritonserver ...")
    try:
        return run(given, command)
    except StarterError as error:
        say(str(error))
        return 1


def run(given: argparse.Namespace, command: Sequence[str]) -> int:
    """Start the server and its models; returns the server's exit status."""
    models = read_repository(given.repository, given.config_name)
    order = start_order(models, given.entry)
    compile_served_code(given.repository, [models[name] for name in order])
    key = os.environ.get(MANAGEMENT_KEY) or secrets.token_hex(16)
    limited = any(models[name].is_limited for name in order)
    pools = [one for one in os.environ.get("TRITONKIT_CUDA_POOLS", "").split(",") if one]
    process = subprocess.Popen([*command, *server_flags(given, key, limited=limited, pools=pools)])
    told_to_end: list[int] = []

    def pass_on(number: int, frame: object) -> None:
        told_to_end.append(number)
        process.send_signal(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, pass_on)
    try:
        server = Server(address=given.http, headers={MANAGEMENT_HEADER: key}, load_timeout_s=given.load_timeout_s)
        server.wait_live(lambda: process.poll() is None, given.timeout_s)
        began = time.monotonic()
        entry = given.entry or list(order)
        start_models(server, models, order, entry, say)
        say(f"ready after {time.monotonic() - began:.1f} s: {', '.join(entry)}")
        reviver = Reviver(server, say)
        while process.poll() is None and not reviver.given_up:
            if not told_to_end:
                reviver.poll(process.pid)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(LOOK_EVERY_S)
        # Who starts this program anew when it ends, a container's keeper, gets everything afresh.
        return 0 if told_to_end else process.returncode or 1
    except StarterError:
        if told_to_end:
            process.wait()
            return 0
        raise
    finally:
        end(process)


def server_flags(given: argparse.Namespace, key: str, *, limited: bool = False, pools: Sequence[str] = ()) -> list[str]:
    """What the server must be told so that models are loaded by us alone, and by nobody else.

    Args:
        limited: a model waits for resources; without the flag the server passes over that in silence.
        pools: its CUDA pools, GPU:BYTES each.
    """
    named = [f"--model-config-name={given.config_name}"] if given.config_name else []
    return [
        f"--model-repository={given.repository}",
        *named,
        *(["--rate-limit=execution_count"] if limited else []),
        *(f"--cuda-memory-pool-byte-size={pool}" for pool in pools),
        "--model-control-mode=explicit",
        *closed(RESTRICTED, MANAGEMENT_HEADER, key),
        *inference_flags(os.environ.get(INFERENCE_KEY, "")),
    ]


def end(process: subprocess.Popen[bytes]) -> None:
    """End the server, in good order if it goes within half a minute."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def say(line: str) -> None:
    """One line of progress."""
    print(f"starter  {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
