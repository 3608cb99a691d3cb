"""The decode loop: windows of many requests share one running batch and come and go at every token.

In: jobs, from any thread. Out: each job's `finish` is called once, from the loop's thread.
Whoever has fewest rows in the batch goes first, and the last quarter of the slots is kept for jobs that have none, so a
short clip does not wait for a recording of an hour.
"""

import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from whisper_job import Job, Ready
from whisper_memory import Array
from whisper_rules import Said, choose, probability
from whisper_slots import Slots
from whisper_tokens import Sizes, Tokens, prompt_of
from whisper_track import Decoded

Encode = Callable[[Array], Array]  # mel [n, n_mels, 3000] -> features [n, n_audio_ctx, n_audio_state]
_CANCEL_CHECK_S = 0.1
_ENCODERS = 4  # requests to the encoder under way at once; it batches them
_STOP = object()


class Cancelled(Exception):
    """The client went away."""


class Stopped(Exception):
    """The model is being unloaded."""


@dataclass(slots=True)
class Row:
    """A window being decoded."""

    job: Job
    ready: Ready
    prompt_length: int
    no_speech_prob: float
    said: Said = field(default_factory=Said)


class DecodeLoop:
    """A thread that decodes until it is stopped. No error of a job ends it.

    Args:
        encode: Asks the encoder for features; called from threads of its own.
        encoder_batch_size: How many windows one such call may hold.
        log: Takes what no client can be told.
    """

    def __init__(
        self,
        slots: Slots,
        sizes: Sizes,
        tokens: Tokens,
        *,
        encode: Encode,
        encoder_batch_size: int,
        log: Callable[[str], None],
    ) -> None:
        self._slots, self._sizes, self._tokens = slots, sizes, tokens
        self._encode, self._encoder_batch_size, self._log = encode, encoder_batch_size, log
        self._inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._jobs: list[Job] = []
        self._rows: list[Row] = []
        self._checked_s = 0.0
        self._is_stopping = False
        self._encoders = ThreadPoolExecutor(_ENCODERS, thread_name_prefix="whisper_encode")
        self._thread = threading.Thread(target=self._work, name="whisper_decode", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def submit(self, job: Job) -> None:
        """Takes a job; returns at once."""
        self._inbox.put(job)

    def stop(self) -> None:
        """Ends the thread; jobs under way fail with `Stopped`."""
        self._inbox.put(_STOP)
        self._thread.join()
        self._encoders.shutdown(cancel_futures=True)

    def _work(self) -> None:
        while not self._is_stopping:
            try:
                self._receive()
                self._drop_cancelled()
                self._fill_slots()
                self._step()
                self._ask_encoder()
            except Exception as error:  # whatever a graph says: all rows shared it
                self._fail_all(error)
        self._fail_all(Stopped("the model is being unloaded"))

    # what comes in

    def _receive(self) -> None:
        """Takes in what has arrived; waits for something when there is nothing to decode."""
        is_idle = not self._rows and not any(job.ready for job in self._jobs)
        wait_s = (_CANCEL_CHECK_S if self._jobs else None) if is_idle else 0.0
        while True:
            try:
                message = self._inbox.get(block=wait_s != 0.0, timeout=wait_s or None)
            except queue.Empty:
                return
            wait_s = 0.0
            if message is _STOP:
                self._is_stopping = True
            elif isinstance(message, Job):
                self._jobs.append(message)
                self._finish_if_done(message)
            else:
                self._take_encoded(*message)

    def _take_encoded(self, job: Job, answer: Array) -> None:
        if job not in self._jobs:  # failed or cancelled meanwhile
            return
        if isinstance(answer, Exception):
            self._fail(job, answer)
        else:
            job.take_encoded(answer)

    # who is decoded

    def _fill_slots(self) -> None:
        while (job := self._next_job()) is not None:
            ready = job.ready.popleft()
            try:
                self._join(job, ready)
            except Exception as error:
                self._slots.forget_after(len(self._rows))
                self._fail(job, error)

    def _next_job(self) -> Job | None:
        """The job that may have the next slot."""
        waiting = [job for job in self._jobs if job.ready]
        if not waiting or not self._slots.free:
            return None
        job = min(waiting, key=lambda job: job.active)  # the first of equals: in order of arrival
        kept = (self._slots.free + self._slots.used) // 4
        return job if not job.active or self._slots.free > kept else None

    def _join(self, job: Job, ready: Ready) -> None:
        """Puts a window into the batch and lets it say its first token."""
        slot = self._slots.join(ready.features)
        if job.language is None:
            job.set_language(self._detect(slot))
        if ready.window is None:  # was there for detection only
            self._slots.leave(slot)
            self._finish_if_done(job)
            return
        prompt = prompt_of(self._tokens, job.language or "", job.task, ready.window.before, self._sizes.n_text_ctx)
        logits = self._slots.prompt(slot, prompt, [prompt.index(self._tokens.sot), len(prompt) - 1])
        no_speech_prob = probability(logits[0], self._tokens.no_speech)
        self._rows.append(Row(job=job, ready=ready, prompt_length=len(prompt), no_speech_prob=no_speech_prob))
        job.active += 1
        self._say(logits[1:], first_row=slot)

    def _detect(self, slot: int) -> str:
        """The language that the model would name first."""
        logits = self._slots.prompt(slot, [self._tokens.sot], [0])[0]
        languages = self._tokens.languages
        found = dict(zip(languages, logits[list(languages.values())].tolist(), strict=True))
        return max(found, key=lambda code: found[code])

    # decoding

    def _step(self) -> None:
        if self._rows:
            self._say(self._slots.step([row.said.tokens[-1] for row in self._rows]), first_row=0)

    def _say(self, logits: Array, first_row: int) -> None:
        """Adds one token to the rows from `first_row` on; rows that are through leave the batch."""
        rows = self._rows[first_row:]
        chosen, logprobs = choose(logits, [row.said for row in rows], self._tokens)
        for row, token, logprob in zip(rows, chosen.tolist(), logprobs.tolist(), strict=True):
            row.said.add(token, logprob, self._tokens.timestamp_begin)
        for slot in range(len(self._rows) - 1, first_row - 1, -1):
            if self._is_through(self._rows[slot]):
                self._close(slot)

    def _is_through(self, row: Row) -> bool:
        said, context = row.said.tokens, self._sizes.n_text_ctx
        return said[-1] == self._tokens.eot or len(said) >= context // 2 or row.prompt_length + len(said) > context

    def _close(self, slot: int) -> None:
        """Takes a row out of the batch and hands its words to its job."""
        row = self._remove(slot)
        said = row.said.tokens[:-1] if row.said.tokens[-1] == self._tokens.eot else row.said.tokens
        decoded = Decoded(
            tokens=tuple(said), avg_logprob=row.said.logprob / (len(said) + 1), no_speech_prob=row.no_speech_prob
        )
        row.job.take_decoded(row.ready, decoded)
        if row.job.is_done:
            self._finish_if_done(row.job)
        else:
            self._send(row.job.tell)

    def _remove(self, slot: int) -> Row:
        """Takes a row out of the batch; the last one moves into its place, as in the slots."""
        row, last = self._rows[slot], self._rows.pop()
        if slot < len(self._rows):
            self._rows[slot] = last
        self._slots.leave(slot)
        row.job.active -= 1
        return row

    # the encoder

    def _ask_encoder(self) -> None:
        """Has further windows encoded while others are decoded: a batch at a time for each job, and not far ahead."""
        for job in self._jobs:
            if not job.is_encoding and job.unencoded and len(job.ready) < self._encoder_batch_size:
                self._encoders.submit(self._encode_for, job, job.take_unencoded(self._encoder_batch_size))

    def _encode_for(self, job: Job, mel: Array) -> None:
        try:
            self._inbox.put((job, self._encode(mel)))
        except Exception as error:
            self._inbox.put((job, error))

    # the end of a job

    def _finish_if_done(self, job: Job) -> None:
        if job.is_done and job in self._jobs:
            self._jobs.remove(job)
            self._finish(job, None)

    def _drop_cancelled(self) -> None:
        now_s = time.monotonic()
        if now_s - self._checked_s < _CANCEL_CHECK_S:
            return
        self._checked_s = now_s
        for job in [job for job in self._jobs if job.is_cancelled()]:
            self._fail(job, Cancelled("the request was cancelled"))

    def _fail(self, job: Job, error: Exception) -> None:
        self._jobs.remove(job)
        for slot in range(len(self._rows) - 1, -1, -1):
            if self._rows[slot].job is job:
                self._remove(slot)
        self._finish(job, error)

    def _fail_all(self, error: Exception) -> None:
        jobs, self._jobs, self._rows = self._jobs, [], []
        self._slots.forget_after(0)
        for job in jobs:
            self._finish(job, error)

    def _finish(self, job: Job, error: Exception | None) -> None:
        self._send(lambda: job.finish(error))

    def _send(self, send: Callable[[], None]) -> None:
        try:
            send()
        except Exception as unsent:  # must not cost the other jobs their rows
            self._log(f"whisper_decoder: a response could not be sent: {unsent!r}")
