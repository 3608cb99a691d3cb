"""What the tables do not say by themselves: causes, per scenario. Numbers are left to the tables."""

PROCESSOR = (
    "The models take nearly all of the time, and on a CPU neither network is faster in batches, so no server can be "
    "far ahead of another: what is left is what each adds around them."
)
REMARKS = {
    "detect": (
        f"{PROCESSOR} With one caller, whoever has a window waits it out (5 ms, for callers that do not come); FastAPI "
        "has none."
    ),
    "transcribe": (
        f"{PROCESSOR} Only the decoder gains by batching: tritonkit's runs continuously, the peers' batch is fixed "
        "until its longest recording is done. With one caller, the window of the encoder (10 ms) is waited out."
    ),
    "both": f"{PROCESSOR} With one caller, the windows of both networks are waited out.",
    "frame": (
        "Shared memory takes away the copies of the tensor on its way through gRPC. FastAPI reads the body into its "
        "own process and needs no further one; tritonkit's client makes a new region for each request, has it "
        "registered and unregistered, and the tensor is copied once more into the memory of the server's stub. With "
        "several callers this overlaps."
    ),
    "assistant": (
        f"{PROCESSOR} One ensemble works on the recording and the picture at the same time; the client that calls step "
        "by step does one after the other. On two cores both want all of them at once, which costs more than it saves "
        "(see the CPU seconds): likely why the steps are ahead here, in a single round. The peers' CPU seconds with "
        "one caller are those of a `vllm serve`, whose parts look for work all the time."
    ),
    "gemm": (
        "One caller waits out a window in which nobody else comes: the price of batching, and why a window is to be "
        "derived from a latency target. With 32 callers it is what makes tritonkit several times as fast as the same "
        "server without it. Ray Serve's first round failed: it had been halted for minutes like the others, which it "
        "does not survive; it has not been halted since."
    ),
    "chat": (
        "The small Llama needs about 2 ms for a token, so what a server does for each token shows as with no other "
        "model: Triton's stub, a gRPC message, and the client's own work on the same two cores. AsyncLLM has none of "
        "these: it is called in the process of the load. The gateway adds FastAPI and server-sent events; it was "
        "measured when the kernel still held its second piece back for 40 ms (Nagle's algorithm), "
        "which is in its first word here and has been put right since."
    ),
}
