"""The running engine: what the service needs of it, and starting it anew when it has died.

In: checked engine arguments. Out: outputs of vLLM, token by token.

The engine is a process of its own. It can die (out of memory, killed) without this one, and Triton would not start a
decoupled model anew.
"""

import time
import uuid
from collections.abc import AsyncIterator
from typing import Any

import llm_engine
from llm_metrics import Measures, stat_loggers

ENGINE_EXIT_S = 1.0  # then it is killed; it holds nothing that would be lost
DEATHS_IN_AN_HOUR = 3
WAITING = 16  # times what the engine works on at once: whoever comes later would wait too long, and memory must end


class Engine:
    """One AsyncLLM after the other. Everything here runs in one event loop."""

    def __init__(self, arguments: dict[str, Any], log: Any, measures: Measures) -> None:
        self._arguments, self._log, self.measures = arguments, log, measures
        self._deaths: list[float] = []
        self._llm: Any = None

    def start(self) -> None:
        """Start it; returns when it can answer. Meanwhile the loop stands still: nobody could be answered anyway.

        Raises:
            llm_engine.EngineError: it cannot start.
        """
        self._llm = llm_engine.start_engine(self._arguments, stat_loggers(self.measures))
        self.suggested = self._llm.model_config.get_diff_sampling_param()
        self.vocabulary_size = self._llm.model_config.get_vocab_size()
        self.most_requests = WAITING * self._llm.vllm_config.scheduler_config.max_num_seqs
        self.max_model_len = self._llm.model_config.max_model_len
        self.tokenizer = self._llm.get_tokenizer()

    def is_alive(self) -> bool:
        return self._llm is not None and not self._llm.errored

    def revive(self) -> None:
        """Start it anew if it has died.

        Raises:
            llm_engine.EngineError: it dies again and again, or cannot start.
        """
        if self.is_alive():
            return
        now = time.monotonic()
        self._deaths = [at for at in self._deaths if now - at < 3600]
        if len(self._deaths) >= DEATHS_IN_AN_HOUR:
            raise llm_engine.EngineError(
                f"llm: the engine has died {DEATHS_IN_AN_HOUR} times within an hour; one that stays is needed; look "
                "for the reason in the server's log, then restart the server"
            )
        self._deaths.append(now)
        self._log("llm: the engine has died; starting it anew")
        self.stop()
        self.start()

    def generate(self, ids: list[int], sampling: Any) -> AsyncIterator[Any]:
        """vLLM's outputs for one request; cancelling the task that reads them ends the request in the engine."""
        return self._llm.generate({"prompt_token_ids": ids}, sampling, uuid.uuid4().hex)  # type: ignore[no-any-return]

    def stop(self) -> None:
        """End the engine's processes."""
        if self._llm is not None:
            self._llm.shutdown(timeout=ENGINE_EXIT_S)
