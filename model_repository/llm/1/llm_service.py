"""Answering requests with the engine, many at a time.

In: an `Ask` and its `Replies`. Out: first TRANSCRIPT and DETECTIONS, then TEXT deltas, last how the answer ended.

One event loop in a thread of its own carries all requests: the engine batches them token by token. A second thread asks
the server every now and then whether clients went away.
"""

import asyncio
import concurrent.futures
import threading
import uuid
from typing import Any

import llm_engine
import llm_messages
import llm_requests
import llm_sampling
from llm_replies import Replies
from llm_requests import Ask

CANCELLATION_POLL_S = 0.1
ENGINE_EXIT_S = 1.0  # then it is killed; it holds nothing that would be lost
WRONG_INPUT = (llm_requests.InputError, llm_messages.PromptError, llm_sampling.SamplingError)


class Service:
    """The engine, its event loop, and the requests that it is answering."""

    def __init__(self, arguments: dict[str, Any], chat_template: str | None, log: Any) -> None:
        self._arguments, self._chat_template, self._log = arguments, chat_template, log
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="llm event loop", daemon=True)
        self._beside = concurrent.futures.ThreadPoolExecutor(max_workers=1, thread_name_prefix="llm tokenizer")
        self._polls = concurrent.futures.ThreadPoolExecutor(max_workers=1, thread_name_prefix="llm cancellation")
        self._tasks: dict[asyncio.Task[None], Replies] = {}
        self._engine: Any = None

    def start(self) -> None:
        """Start the engine; returns when it can answer.

        Raises:
            llm_engine.EngineError: it cannot start.
        """
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result()

    async def _start(self) -> None:
        self._engine = llm_engine.start_engine(self._arguments)
        self._suggested = self._engine.model_config.get_diff_sampling_param()
        self._vocabulary_size = self._engine.model_config.get_vocab_size()
        self._max_model_len = self._engine.model_config.max_model_len
        self._tokenizer = self._engine.get_tokenizer()
        self._watch = self._loop.create_task(self._cancel_unwanted())

    def answer(self, ask: Ask, replies: Replies) -> None:
        """Begin to answer; returns at once."""
        self._loop.call_soon_threadsafe(self._begin, ask, replies)

    def _begin(self, ask: Ask, replies: Replies) -> None:
        task = self._loop.create_task(self._answer_or_fail(ask, replies))
        self._tasks[task] = replies
        task.add_done_callback(lambda done: self._tasks.pop(done, None))

    async def _answer_or_fail(self, ask: Ask, replies: Replies) -> None:
        try:
            await self._answer(ask, replies)
        except WRONG_INPUT as error:
            replies.fail_as_wrong_input(str(error))
        except asyncio.CancelledError:
            replies.fail_as_cancelled()
        except Exception as error:  # one request's failure must not be another's
            self._fail(replies, error)

    async def _answer(self, ask: Ask, replies: Replies) -> None:
        sampling = llm_sampling.sampling_params_from(ask.sampling_parameters, self._suggested, self._vocabulary_size)
        ids = await self._loop.run_in_executor(self._beside, self._token_ids, ask)
        if ask.passed_through:
            replies.send(llm_requests.first_tensors(ask))
        completion_tokens = 0
        async for output in self._engine.generate({"prompt_token_ids": ids}, sampling, uuid.uuid4().hex):
            delta = output.outputs[0]
            completion_tokens += len(delta.token_ids)
            if output.finished:
                reason = delta.finish_reason or "stop"
                replies.send(llm_requests.last_tensors(delta.text, reason, len(ids), completion_tokens))
            elif delta.text:
                replies.send(llm_requests.delta_tensors(delta.text))
        replies.end()

    def _token_ids(self, ask: Ask) -> list[int]:
        return llm_messages.token_ids(
            self._tokenizer,
            ask.messages,
            ask.prompt,
            chat_template=self._chat_template,
            max_model_len=self._max_model_len,
        )

    def _fail(self, replies: Replies, error: Exception) -> None:
        if self._engine.errored:
            replies.fail(
                "llm: the engine has died; a running engine is needed; look for the reason in the server's log, then "
                "reload the model or restart the server"
            )
            self._log(f"llm: the engine has died: {error!r}")
        elif isinstance(error, llm_engine.refusals()):  # vLLM's own check of values against the model: grammars, words
            replies.fail_as_wrong_input(str(llm_sampling.SamplingError(" ".join(str(error).split()))))
        else:
            replies.fail(f"llm: {type(error).__name__}: {error}")
            self._log(f"llm: a request failed: {error!r}")

    async def _cancel_unwanted(self) -> None:
        """Stop generating for clients that went away; cancelling the task makes vLLM abort the request."""
        while True:
            await asyncio.sleep(CANCELLATION_POLL_S)
            for task, replies in list(self._tasks.items()):
                try:
                    if await self._loop.run_in_executor(self._polls, replies.is_cancelled):
                        task.cancel()
                except Exception as error:  # one request that cannot be asked about must not end the watch over others
                    self._log(f"llm: cannot tell whether a request was cancelled: {error!r}")

    def is_ready(self) -> bool:
        return self._engine is not None and not self._engine.errored

    def stop(self) -> None:
        """End the requests, the engine's processes and the threads, within seconds."""
        if self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(timeout=10)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(timeout=5)
        self._beside.shutdown(wait=False, cancel_futures=True)
        self._polls.shutdown(wait=False, cancel_futures=True)

    async def _stop(self) -> None:
        if self._engine is None:
            return
        self._watch.cancel()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._engine.shutdown(timeout=ENGINE_EXIT_S)
