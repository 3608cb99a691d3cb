"""Recordings to transcripts, a batch at a time: encoded together, then decoded together until the last one is done.

This is what a batching server can do with a function: the batch is fixed while it runs. Recordings last 30 s at most.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.peers.work.places import REPOSITORY, cores, session, share_served_code

share_served_code("whisper_features", "whisper_decoder")

import whisper_audio  # noqa: E402
import whisper_tokens  # noqa: E402
from whisper_rules import Said, choose  # noqa: E402
from whisper_slots import Graphs, Slots  # noqa: E402

MOST_S = 30


class Hearing:
    """Encoder and decoder of one Whisper checkpoint."""

    def __init__(self) -> None:
        folder = REPOSITORY / "whisper_decoder" / "1"
        self._sizes, self._tokens = whisper_tokens.read_description(folder / "whisper.json")
        self._vocabulary = whisper_tokens.read_vocabulary(folder / "whisper.tiktoken")
        self._graphs = Graphs(folder, cores())
        self._encoder = session(REPOSITORY / "whisper_encoder" / "1" / "model.onnx")

    def batch(self, recordings: Sequence[np.ndarray]) -> list[str]:
        """What is said in each; float32 [n], mono, 16 kHz."""
        features = self._encoder.run(["features"], {"mel": np.concatenate([self._mel(one) for one in recordings])})[0]
        return [self._vocabulary.decode(said.tokens).strip() for said in self._decoded(features)]

    def _mel(self, samples: np.ndarray) -> np.ndarray:
        mel = whisper_audio.log_mel(samples, self._sizes.n_mels)
        return whisper_audio.windows(mel, np.array([[0, min(mel.shape[1], MOST_S * 100)]], np.int32))

    def _decoded(self, features: np.ndarray) -> list[Said]:
        """The tokens of each window."""
        slots = Slots(self._graphs, self._sizes, len(features))
        prompt = whisper_tokens.prompt_of(self._tokens, "en", "transcribe", (), self._sizes.n_text_ctx)
        everything = [Said() for _ in features]
        for window, said in zip(features, everything, strict=True):
            self._say(slots.prompt(slots.join(window), prompt, [len(prompt) - 1]), [said])
        rows = list(everything)
        while rows:
            self._say(slots.step([said.tokens[-1] for said in rows]), rows)
            for slot in range(len(rows) - 1, -1, -1):
                if self._is_through(rows[slot]):
                    rows[slot] = rows[-1]  # as in the slots: the last row moves into the free place
                    rows.pop()
                    slots.leave(slot)
        return everything

    def _say(self, logits: np.ndarray, rows: list[Said]) -> None:
        chosen, logprobs = choose(logits, rows, self._tokens)
        for said, token, logprob in zip(rows, chosen.tolist(), logprobs.tolist(), strict=True):
            said.add(token, logprob, self._tokens.timestamp_begin)

    def _is_through(self, said: Said) -> bool:
        return said.tokens[-1] == self._tokens.eot or len(said.tokens) >= self._sizes.n_text_ctx // 2
