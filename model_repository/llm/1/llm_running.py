"""The running engine: what the service needs of it, and starting it anew when it has died.

In: checked engine arguments. Out: outputs of vLLM, token by token.

The engine is a process of its own. It can die (out of memory, killed) without this one, and Triton would not start a
decoupled model anew.
"""

import time
import uuid
from collections.abc import AsyncIterator
from typing import Any

import llm_cores
import llm_engine
from llm_metrics import Measures, stat_loggers

ENGINE_EXIT_S = 1.0  # then it is killed; it holds nothing that would be lost
DEATHS_IN_AN_HOUR = 3
WAITING = 16  # times what the engine works on at once: whoever comes later would wait too long, and memory must end


class Engine:
    """One AsyncLLM after the other. start() and revive() take half a minute: they run beside the others' event loop."""

    def __init__(self, arguments: dict[str, Any], log: Any, measures: Measures, cores: frozenset[int]) -> None:
        self._arguments, self._log, self.measures, self._cores = arguments, log, measures, cores
        self._deaths: list[float] = []
        self._why_given_up: llm_engine.EngineError | None = None
        self._is_unloaded = False
        self._llm: Any = None

    def start(self) -> None:
        """Start it; returns when it can answer.

        Raises:
            llm_engine.EngineError: it cannot start.
        """
        with llm_cores.started_on(self._cores):
            llm = llm_engine.start_engine(self._arguments, stat_loggers(self.measures))
        self.suggested = llm.model_config.get_diff_sampling_param()
        self.vocabulary_size = llm.model_config.get_vocab_size()
        self.most_requests = WAITING * llm.vllm_config.scheduler_config.max_num_seqs
        self.max_model_len = llm.model_config.max_model_len
        self.tokenizer = llm.get_tokenizer()
        self._llm = llm
        if self._is_unloaded:  # meanwhile
            self.stop()

    def is_alive(self) -> bool:
        return self._llm is not None and not self._llm.errored

    def needs_start(self) -> bool:
        return not self.is_alive() and self._why_given_up is None

    def check(self) -> None:
        """No request waits for an engine that is starting: most callers have less patience.

        Raises:
            llm_engine.EngineError: it has died.
        """
        if not self.is_alive():
            raise self._why_given_up or llm_engine.EngineError(
                "llm: the engine has died; a running engine is needed; it is being started anew, send the request "
                "again in half a minute"
            )

    def revive(self) -> None:
        """Start it anew.

        Raises:
            llm_engine.EngineError: it dies again and again, or cannot start.
        """
        now = time.monotonic()
        self._deaths = [at for at in self._deaths if now - at < 3600]
        if len(self._deaths) >= DEATHS_IN_AN_HOUR:
            self._why_given_up = llm_engine.EngineError(
                f"llm: the engine has died {DEATHS_IN_AN_HOUR} times within an hour; one that stays is needed; look "
                "for the reason in the server's log, then restart the server"
            )
            raise self._why_given_up
        self._deaths.append(now)
        self._log("llm: the engine has died; starting it anew")
        self._shut_down()
        self.start()

    def generate(self, ids: list[int], sampling: Any) -> AsyncIterator[Any]:
        """vLLM's outputs for one request; cancelling the task that reads them ends the request in the engine."""
        prompt = {"type": "token", "prompt_token_ids": ids}  # without the type vLLM gives it to another thread first
        return self._llm.generate(prompt, sampling, uuid.uuid4().hex)  # type: ignore[no-any-return]

    def stop(self) -> None:
        """End the engine's processes, now or as soon as they have started."""
        self._is_unloaded = True
        self._shut_down()

    def _shut_down(self) -> None:
        if self._llm is not None:
            self._llm.shutdown(timeout=ENGINE_EXIT_S)
