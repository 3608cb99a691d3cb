"""Command `tritonkit gateway`: the edge of the gateway, where environment and files are read."""

import os
import socket
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from clients.defaults import DEFAULT_URL

KEYS_VARIABLE = "TRITONKIT_API_KEYS"
LOOPBACK = ("127.0.0.1", "localhost", "::1")


def gateway(
    server: Annotated[str, typer.Option(envvar="TRITONKIT_URL", help="The Triton server")] = DEFAULT_URL,
    chains: Annotated[
        int, typer.Option(min=1, help="On how many GPUs the server has a copy of each pipeline (build --chains)")
    ] = 1,
    host: Annotated[str, typer.Option(help="Address to listen on")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one")] = 9000,
    api_key_file: Annotated[
        Path | None, typer.Option(help=f"Keys that may ask, one a line; or set {KEYS_VARIABLE}")
    ] = None,
    without_keys: Annotated[bool, typer.Option("--without-keys", help="Let everybody on the network ask")] = False,
    most_in_flight: Annotated[
        int | None, typer.Option(min=1, help="Requests answered at once; twice the engine's max_num_seqs if left out")
    ] = None,
    max_body_mib: Annotated[int, typer.Option(min=1, help="Largest request")] = 32,
    max_audio_s: Annotated[float, typer.Option(min=1, help="Longest recording")] = 7200.0,
    timeout_s: Annotated[float, typer.Option(min=0.1, help="Longest wait for the next part of an answer")] = 300.0,
    allow_origin: Annotated[
        list[str] | None, typer.Option(help="A site whose pages may ask, as https://example.org; may be repeated")
    ] = None,
    public_name: Annotated[
        list[str] | None, typer.Option(help="A further host name under which browsers reach it; may be repeated")
    ] = None,
    alias: Annotated[list[str] | None, typer.Option(help="A further name of a model, as whisper-1=transcribe")] = None,
) -> None:
    """Serve OpenAI's API, and a page for people, in front of a Triton server until Ctrl-C."""
    from clients.errors import ClientError
    from clients.gateway.settings import MEBIBYTE, Settings

    try:
        from clients.gateway.app import make_app
    except ModuleNotFoundError as error:
        fail(f"the Python package `{error.name}` is not installed. Install it with: pip install 'tritonkit[gateway]'")

    keys = hashed_keys(api_key_file)
    if host not in LOOPBACK and not keys and not without_keys:
        fail(f"--host {host} is open to the network: give --api-key-file, or say --without-keys.", status=2)
    settings = Settings(
        server=server,
        chains=chains,
        keys=keys,
        most_in_flight=most_in_flight,
        max_body_bytes=max_body_mib * MEBIBYTE,
        max_audio_s=max_audio_s,
        timeout_s=timeout_s,
        allowed_origins=tuple(allow_origin or ()),
        hosts=(*LOOPBACK, *(name.lower() for name in public_name or ())) if host in LOOPBACK or public_name else (),
        aliases=aliases_of(alias or []),
    )
    try:
        app = make_app(settings)
    except ClientError as error:
        fail(str(error), status=2)
    import asyncio

    raise typer.Exit(asyncio.run(serve(app, listening(host, port), bool(keys))))


def hashed_keys(file: Path | None) -> tuple[bytes, ...]:
    """The keys that may ask, of the file and of the environment, as hashes."""
    from clients.gateway.keys import hash_key, read_keys

    text = os.environ.pop(KEYS_VARIABLE, "").replace(",", "\n")
    try:
        keys = read_keys(text) if text.strip() else ()
        keys += read_keys(file.read_text(encoding="utf-8")) if file else ()
    except (OSError, ValueError) as error:
        fail(f"API keys: {error}", status=2)
    return tuple(hash_key(key) for key in keys)


def aliases_of(given: list[str]) -> dict[str, str]:
    """NAME=MODEL, each a name that the API has."""
    from clients.gateway.names import ALL

    aliases: dict[str, str] = {}
    for one in given:
        name, equals, model = one.partition("=")
        if not name or not equals or model not in ALL:
            fail(f"--alias {one}: NAME=MODEL is needed, MODEL one of {', '.join(ALL)}.", status=2)
        aliases[name] = model
    return aliases


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens; taken before anything else, so that its port is known and surely ours."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        fail(f"--port {port}: {error.strerror or error}. Give another, or 0 for a free one.")
    # A piece of an answer leaves at once; connections inherit it. asyncio forgets it for sockets like this one: the
    # kernel then holds the second piece for the 40 ms after which a client acknowledges the first.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


async def serve(app: object, listener: socket.socket, has_keys: bool) -> int:
    """Serves until a signal; requests in flight are answered first. A second signal ends it at once."""
    from clients.gateway.serving import run

    where, port = listener.getsockname()[:2]
    shown = f"[{where}]" if ":" in where else where
    keys = "with" if has_keys else "no"
    return await run(app, listener, f"ready: http://{shown}:{port}  (OpenAI's API below /v1, {keys} API keys)")


def fail(message: str, status: int = 1) -> NoReturn:
    """Say why on stderr and end."""
    print(message, file=sys.stderr)
    raise typer.Exit(status)
