"""A bare AsyncLLM: vLLM's engine called in the process of the load itself, with the served model's own arguments,
and, as VLLM_CPU_OMP_THREADS_BIND says, on all cores or on those of the served model.

python -m benchmarks.peers.apps.engine
"""

import asyncio
import json
import os
import sys
from typing import Any

from benchmarks.peers.apps.direct import obey
from benchmarks.peers.cases import Case
from benchmarks.peers.driver import Answer, Call, Watch
from benchmarks.peers.work.asking import MAX_TOKENS
from benchmarks.peers.work.places import CACHE, REPOSITORY, WEIGHTS


def engine_arguments() -> dict[str, Any]:
    """Those of the served model."""
    given = json.loads((CACHE / "repository" / "llm" / "1" / "model.json").read_text(encoding="utf-8"))
    return {**given, "model": str(WEIGHTS), "disable_log_stats": True}


async def call_of() -> Call:
    """Calls the engine, streamed."""
    from transformers import AutoTokenizer
    from vllm import SamplingParams
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.sampling_params import RequestOutputKind
    from vllm.v1.engine.async_llm import AsyncLLM

    sys.path.append(str(REPOSITORY / "llm" / "1"))
    import llm_cores

    tokenizer = AutoTokenizer.from_pretrained(WEIGHTS)
    cores = llm_cores.cores_of(llm_cores.setting_of({}, os.environ), llm_cores.available_cores())
    with llm_cores.started_on(cores):
        engine = AsyncLLM.from_engine_args(AsyncEngineArgs(**engine_arguments()))
    asked = SamplingParams(temperature=0, max_tokens=MAX_TOKENS, output_kind=RequestOutputKind.DELTA)
    numbers = iter(range(1_000_000_000))

    async def call(case: Case) -> Answer:
        watch = Watch()
        messages = json.loads(case.body)["messages"]
        ids = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
        async for output in engine.generate({"prompt_token_ids": ids}, asked, str(next(numbers))):
            watch.take(output.outputs[0].text)
        return watch.answer()

    return call


async def main() -> None:
    await obey("chat", await call_of())


if __name__ == "__main__":
    asyncio.run(main())
