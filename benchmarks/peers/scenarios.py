"""What is measured: per scenario the service, who takes part, how many callers, and what is to be said about it."""

from __future__ import annotations

from dataclasses import dataclass

STEPS = "tritonkit, steps by the client"
BARE = ("AsyncLLM", "AsyncLLM, on its core")
HTTP_PEERS = ("FastAPI", "LitServe", "BentoML", "Ray Serve", "PyTriton")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One table.

    Attributes:
        service: what is asked for, see work/services.py; `chat` is a language model alone.
        callers: loads, each with its seconds a round.
        rounds: turns of each contender; more of them where rounds are short and the machine's pace changes.
        large: a language model of 101 million parameters in the place of the small one.
        bounds: contenders that are no servers, or tritonkit without a part: shown, not ranked.
    """

    title: str
    words: str
    service: str
    contenders: tuple[str, ...]
    callers: dict[int, float]
    bounds: tuple[str, ...] = ()
    rounds: int = 3
    large: bool = False


SCENARIOS = {
    "detect": Scenario(
        title="Detect only",
        words="A JPEG in, labels, scores and boxes out (YOLOv3-tiny).",
        service="detect",
        contenders=("tritonkit", STEPS, *HTTP_PEERS, "no server"),
        bounds=("no server",),
        callers={1: 1.5, 8: 3.0},
    ),
    "transcribe": Scenario(
        title="Transcribe only",
        words="Recordings of 3.5 to 14.7 s in, the text out (Whisper tiny.en).",
        service="transcribe",
        contenders=("tritonkit", STEPS, *HTTP_PEERS, "no server"),
        bounds=("no server",),
        callers={1: 2.0, 8: 6.0},
    ),
    "both": Scenario(
        title="Both for one request",
        words="A recording and a JPEG in, transcript and detections out.",
        service="both",
        contenders=("tritonkit", STEPS, *HTTP_PEERS, "no server"),
        bounds=("no server",),
        callers={1: 2.0, 8: 6.0},
    ),
    "assistant": Scenario(
        title="The whole assistant",
        words=(
            "A recording, a JPEG and a question in; transcript, detections and an answer about both out. Peers have a "
            "`vllm serve` behind them; FastAPI, as in the articles, `generate` of Transformers in its own process."
        ),
        service="assistant",
        contenders=("tritonkit", STEPS, *HTTP_PEERS),
        callers={1: 2.0, 8: 6.0},
    ),
    "gemm": Scenario(
        title="Dynamic batching",
        words=(
            "A row of 2,048 numbers through four layers (67 MB of weights, read once a batch). `no window` is the same "
            "server and model with dynamic batching off."
        ),
        service="gemm",
        contenders=("tritonkit", "tritonkit, no window", *HTTP_PEERS),
        bounds=("tritonkit, no window",),
        callers={1: 1.5, 32: 3.0},
    ),
    "frame": Scenario(
        title="A large tensor",
        words="12.6 MB in, three numbers out.",
        service="frame",
        contenders=("tritonkit, shared memory", "tritonkit", *HTTP_PEERS),
        bounds=("tritonkit",),
        callers={1: 2.0, 4: 3.0},
    ),
    "chat": Scenario(
        title="The language model alone",
        words="Chat messages in, the answer streamed (the small Llama, greedy, same engine arguments everywhere).",
        service="chat",
        contenders=("tritonkit", "tritonkit, gateway", "vllm serve", *BARE, "Transformers"),
        bounds=BARE,
        callers={1: 1.5, 8: 2.0, 32: 2.0},
        rounds=9,
    ),
    "chat_large": Scenario(
        title="A larger language model",
        words=(
            "The same with a Llama of 101 million parameters in float32. It was made for this, with random weights: "
            "what it says means nothing, but each token costs what it costs a model of that size."
        ),
        service="chat",
        contenders=("tritonkit", "tritonkit, gateway", "vllm serve", *BARE),
        bounds=BARE,
        callers={1: 10.0, 8: 12.0},
        large=True,
    ),
}
