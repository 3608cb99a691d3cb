"""A program, not a test: starts vLLM's real engine on a few tiny random networks and prints what it reports.

In: as its argument, JSON, a list of {"config": ..., "engine": ...}. Out: a line of JSON for each: blocks, tokens,
block_size. One process for all, because importing vLLM takes longer than starting an engine. The engine runs inside it.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path


def main() -> None:
    """Start the engines one after the other."""
    os.environ |= {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_LOGGING_LEVEL": "ERROR", "VLLM_NO_USAGE_STATS": "1"}
    import torch
    from vllm import LLM

    torch.set_num_threads(1)
    for case in json.loads(sys.argv[1]):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "config.json").write_text(json.dumps(case["config"]))
            llm = LLM(folder, load_format="dummy", skip_tokenizer_init=True, enforce_eager=True, **case["engine"])
            cache = llm.llm_engine.vllm_config.cache_config
            told = {
                "blocks": cache.num_gpu_blocks,
                "tokens": cache.kv_cache_size_tokens,
                "block_size": cache.block_size,
                "batched": llm.llm_engine.vllm_config.scheduler_config.max_num_batched_tokens,
                "in_flight": llm.llm_engine.vllm_config.max_in_flight_tokens,
            }
            print("REAL " + json.dumps(told), flush=True)
            del llm


if __name__ == "__main__":
    main()
