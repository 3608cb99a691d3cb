"""What holds where a caller says nothing; apart, so that the commands can show it without loading a protocol."""

DEFAULT_URL = "grpc://127.0.0.1:8001"
TIMEOUT_S = 300.0  # the longest wait for an answer, or for the next part of a streamed one
SAMPLE_RATE_HZ = 16_000
MAX_TOKENS = 256  # said in every request: the engine's own default is 16, which cuts most answers short
