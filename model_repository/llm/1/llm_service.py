"""Answering requests with the engine, many at a time.

In: an `Ask` and its `Replies`. Out: first TRANSCRIPT and DETECTIONS, then TEXT deltas, last how the answer ended.

One event loop in a thread of its own carries all requests: the engine batches them token by token. A second thread asks
the server every now and then whether clients went away.
"""

import asyncio
import concurrent.futures
import gc
import threading
from dataclasses import dataclass
from typing import Any

import llm_engine
import llm_logprobs
import llm_messages
import llm_requests
import llm_sampling
import llm_template
from llm_lifelines import Lifelines
from llm_pieces import Pieces
from llm_replies import Replies
from llm_requests import Ask
from llm_running import Engine

POLL_S = 0.1
STOP_S = 10.0
SHORT = 4000  # characters: so much is tokenized within half a millisecond, sooner than another thread takes it up
WRONG_INPUT = (llm_requests.InputError, llm_messages.PromptError, llm_sampling.SamplingError)


@dataclass(frozen=True, slots=True)
class Running:
    """A request that is being answered."""

    id: str
    replies: Replies


class Service:
    """The engine, its event loop, and the requests that it is answering."""

    def __init__(self, engine: Engine, chat_template: str | None, gap_s: float, log: Any) -> None:
        self._engine, self._chat_template, self._gap_s, self._log = engine, chat_template, gap_s, log
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="llm event loop", daemon=True)
        self._beside = concurrent.futures.ThreadPoolExecutor(max_workers=1, thread_name_prefix="llm tokenizer")
        self._polls = concurrent.futures.ThreadPoolExecutor(max_workers=1, thread_name_prefix="llm cancellation")
        self._starts = concurrent.futures.ThreadPoolExecutor(max_workers=1, thread_name_prefix="llm start")
        self._tasks: dict[asyncio.Task[None], Running] = {}
        self._lifelines = Lifelines()
        self._watcher: asyncio.Task[None] | None = None
        self._revival: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start the engine; returns when it can answer.

        Raises:
            llm_engine.EngineError: it cannot start.
        """
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result()

    async def _start(self) -> None:
        await self._loop.run_in_executor(self._starts, self._engine.start)
        gc.collect()
        gc.freeze()  # vLLM's half a million objects stay for good: not to be looked through between two tokens
        self._watcher = self._loop.create_task(self._watch())

    def answer(self, ask: Ask, replies: Replies) -> None:
        """Begin to answer; returns at once."""
        self._loop.call_soon_threadsafe(self._begin, ask, replies)

    def hold(self, request_id: str, replies: Replies) -> None:
        """Stop answering the request of this id when the one behind `replies` is cancelled; returns at once."""
        self._loop.call_soon_threadsafe(self._lifelines.hold, request_id, replies)

    def _begin(self, ask: Ask, replies: Replies) -> None:
        if self._lifelines.is_broken(ask.id):
            replies.fail_as_cancelled()
            return
        if len(self._tasks) >= self._engine.most_requests:
            self._lifelines.release(ask.id)
            replies.fail_as_full(len(self._tasks))
            return
        task = self._loop.create_task(self._answer_or_fail(ask, replies))
        self._tasks[task] = Running(ask.id, replies)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._lifelines.release(self._tasks.pop(task).id)

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
        engine, began = self._engine, self._loop.time()
        engine.check()
        sampling = llm_sampling.sampling_params_from(ask.sampling_parameters, engine.suggested, engine.vocabulary_size)
        if ask.passed_through:  # before the prompt is looked at: what was heard must not be lost when it is too long
            replies.send(llm_requests.first_tensors(ask))
        if ask.length <= SHORT:
            ids = self._token_ids(ask)
        else:
            ids = await self._loop.run_in_executor(self._beside, self._token_ids, ask)
        pieces, completion_tokens = Pieces(self._loop, replies, self._gap_s), 0
        try:
            async for output in engine.generate(ids, sampling):
                delta = output.outputs[0]
                if delta.token_ids and not completion_tokens:
                    engine.measures.first_token(self._loop.time() - began)
                completion_tokens += len(delta.token_ids)
                pieces.add(delta.text, llm_logprobs.logprobs_of(delta), is_last=output.finished)
                if output.finished:
                    pieces.end(delta.finish_reason or "stop", len(ids), completion_tokens)
                    engine.measures.finished(len(ids), completion_tokens)
        finally:
            pieces.send()  # what was written before a failure is not lost

    def _token_ids(self, ask: Ask) -> list[int]:
        tokenizer = self._engine.tokenizer
        return llm_messages.token_ids(
            tokenizer,
            ask.messages,
            ask.prompt,
            chat_template=self._chat_template,
            template_arguments=llm_template.template_arguments_from(
                ask.template_arguments, tokenizer, self._chat_template
            ),
            max_model_len=self._engine.max_model_len,
        )

    def _fail(self, replies: Replies, error: Exception) -> None:
        if isinstance(error, llm_engine.EngineError):
            replies.fail(str(error))
        elif not self._engine.is_alive():
            replies.fail(
                "llm: the engine died while it answered; a running engine is needed; it is being started anew, send "
                "the request again"
            )
        elif isinstance(error, llm_engine.refusals()):  # vLLM's own check of values against the model: grammars, words
            replies.fail_as_wrong_input(str(llm_sampling.SamplingError(" ".join(str(error).split()))))
            return
        else:
            replies.fail(f"llm: {type(error).__name__}: {error}")
        self._log(f"llm: a request failed: {error!r}")

    async def _watch(self) -> None:
        """Stop generating for clients that went away, and revive an engine that died."""
        while True:
            await asyncio.sleep(POLL_S)
            tasks, lifelines = list(self._tasks.items()), self._lifelines.held()
            everybody = [*(running.replies for _, running in tasks), *(replies for _, replies in lifelines)]
            gone = await self._loop.run_in_executor(self._polls, self._ask_server, everybody)
            for task, running in tasks:
                if running.replies in gone:
                    task.cancel()  # vLLM then aborts the request
            for request_id, replies in lifelines:
                if replies in gone:
                    self._break(request_id)
            if self._engine.needs_start() and (self._revival is None or self._revival.done()):
                self._revival = self._loop.create_task(self._revive())

    async def _revive(self) -> None:
        try:
            await self._loop.run_in_executor(self._starts, self._engine.revive)
        except llm_engine.EngineError as error:
            self._log(str(error))

    def _break(self, request_id: str) -> None:
        """Stop answering whoever held this lifeline."""
        self._lifelines.break_(request_id)
        for task, running in self._tasks.items():
            if running.id == request_id:
                task.cancel()

    def _ask_server(self, everybody: list[Replies]) -> set[Replies]:
        """Those that nobody waits for any more; and hand over what was measured. Beside the loop: both wait."""
        self._engine.measures.publish()
        return {replies for replies in everybody if self._is_unwanted(replies)}

    def _is_unwanted(self, replies: Replies) -> bool:
        try:
            return replies.is_cancelled()
        except Exception as error:  # one request that cannot be asked about must not end the watch over the others
            self._log(f"llm: cannot tell whether a request was cancelled: {error!r}")
            return False

    def is_ready(self) -> bool:
        return self._engine.is_alive()

    def stop(self) -> None:
        """End the requests, the engine's processes and the threads, within seconds."""
        if self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(timeout=STOP_S)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(timeout=STOP_S)
        self._beside.shutdown(wait=False, cancel_futures=True)
        self._polls.shutdown(wait=False, cancel_futures=True)
        self._starts.shutdown(wait=False, cancel_futures=True)

    async def _stop(self) -> None:
        tasks = [*self._tasks, *(task for task in (self._watcher, self._revival) if task)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._lifelines.end()
        self._engine.stop()
