"""What the tables do not say by themselves: causes, per scenario. Numbers are left to the tables."""

PROCESSOR = (
    "The models take nearly all of the time, and on a CPU neither network is faster in batches, so no server can be "
    "far ahead of another: what is left is what each adds around them."
)
REMARKS = {
    "detect": (
        f"{PROCESSOR} FastAPI with one caller calls the network in the very process that reads the request, as fast as "
        "no server at all: nothing crosses to another process, and ONNX Runtime's threads wait by spinning, which "
        "tritonkit turned off since it costs more than it gives as soon as others want the cores (8 callers)."
    ),
    "transcribe": (
        f"{PROCESSOR} Only the decoder gains by batching: tritonkit's runs continuously, the peers' batch is fixed "
        "until its longest recording is done."
    ),
    "both": (
        f"{PROCESSOR} tritonkit's ensemble sees after it has heard (docs/decisions/branches-in-turn.md), as the client "
        "does that calls the steps: on two cores both networks want all of them anyway."
    ),
    "frame": (
        "Shared memory takes away the copies of the tensor on its way through gRPC. tritonkit's client makes a new "
        "region for each request, has it registered and unregistered, and the tensor is copied once more into the "
        "memory of the server's stub: all that is less than what a body of this size costs a server of HTTP."
    ),
    "assistant": (
        f"{PROCESSOR} The steps are as fast one after the other: on two cores recording and picture both want all of "
        "them. The peers' CPU seconds with one caller are those of a `vllm serve`, whose parts look for work all the "
        "time."
    ),
    "gemm": (
        "One caller waits out a window in which nobody else comes: the price of batching, and why a window is to be "
        "derived from a latency target. With 32 callers it is what makes tritonkit several times as fast as the same "
        "server without it."
    ),
    "chat": (
        "The small Llama needs about 2 ms for a token, so what a server does for each token shows as with no other "
        "model. tritonkit sends tokens that come within 40 ms of its last response together (`response_gap_ms`), the "
        "first and the last at once. AsyncLLM has no server: it is called in the process of the load; `on its core` it "
        "is bound as tritonkit's engine is. What is left between them is Triton, its stub and the client: the first "
        "word comes some milliseconds later, and a place in the batch is empty for so long. The gateway adds FastAPI "
        "and server-sent events, and stands to `vllm serve` as tritonkit to AsyncLLM. Transformers answers whole, not "
        "streamed, one caller after the other: ahead while there is one, far behind with eight."
    ),
    "chat_large": (
        "With a token that takes tens of milliseconds the engine is all that counts: tritonkit, its gateway and a bare "
        "AsyncLLM differ no more than rounds of one of them do. A round of one caller holds four "
        "answers, one of eight about twenty."
    ),
}
