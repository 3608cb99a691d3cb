"""What a gateway is told when it starts. Nothing here reads the environment; command.py does."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from clients.defaults import DEFAULT_URL, TIMEOUT_S

MEBIBYTE = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One gateway.

    Attributes:
        server: the Triton server, grpc://host:port.
        chains: on how many GPUs it has a copy of each pipeline.
        keys: SHA-256 of each API key that may ask; none lets everybody.
        most_in_flight: requests answered at once; further ones are refused with 429 at once. None: twice as many as the
            engine works on at once, as its config says.
        most_choices: answers of one request: `n` times its prompts.
        max_body_bytes: the largest request.
        max_audio_s: the longest recording, in seconds; a small file can hold hours.
        timeout_s: the longest wait for an answer of the server, or for its next part.
        receive_timeout_s: how long a caller may take to send its request.
        send_timeout_s: how long a caller may leave a part of its answer unread.
        retry_after_s: what a refused caller is told to wait.
        allowed_origins: pages of other origins that may ask from a browser.
        hosts: names under which a browser may reach the gateway; none allows any (a guard against DNS rebinding).
        aliases: further names of models, such as {"whisper-1": "transcribe"}.
    """

    server: str = DEFAULT_URL
    chains: int = 1
    keys: tuple[bytes, ...] = field(default=(), repr=False)
    most_in_flight: int | None = None
    most_choices: int = 16
    max_body_bytes: int = 32 * MEBIBYTE
    max_audio_s: float = 2 * 3600.0
    timeout_s: float = TIMEOUT_S
    receive_timeout_s: float = 60.0
    send_timeout_s: float = 30.0
    retry_after_s: int = 1
    allowed_origins: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ("127.0.0.1", "localhost", "::1")
    aliases: Mapping[str, str] = field(default_factory=dict)
