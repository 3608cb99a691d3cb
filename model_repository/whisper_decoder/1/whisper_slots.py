"""The running batch: keys and values of every row, and the decoder's graphs that read them.

In: features of a window, tokens. Out: logits. Nothing here knows what tokens mean or who asked, nor whether arrays are
numpy's on the host or torch's on a GPU (`whisper_memory`).
Rows lie without gaps in slots 0..n-1, so every step reads plain prefixes of the slot arrays and nothing is restacked
when rows come or go: a new row takes the next slot, and when one leaves, the last row moves into its slot.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnxruntime
from whisper_memory import Array, Host, Memory, open_graph, run_graph
from whisper_tokens import Sizes

_CAPACITIES = (64, 128, 256)  # of the past, in tokens; then the whole text context


class Graphs:
    """cross.onnx and decoder.onnx of one checkpoint, loaded.

    Args:
        threads: Of each graph, on the CPU.
        memory: Where they compute, and where the arrays lie that they read and write.
    """

    def __init__(self, folder: Path, threads: int, memory: Memory | None = None) -> None:
        self.memory = memory or Host()
        onnxruntime.disable_telemetry_events()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        # steps are short and come one after the other: threads that spin between them take the cores from the encoder
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self.cross, self.decoder = (
            open_graph(self.memory, folder / name, options) for name in ("cross.onnx", "decoder.onnx")
        )


class Slots:
    """Rows of different age that share one step.

    Args:
        count: How many rows there can be at once.
    """

    def __init__(self, graphs: Graphs, sizes: Sizes, count: int) -> None:
        self._graphs, self._sizes, self._memory = graphs, sizes, graphs.memory
        layers, heads = sizes.n_text_layer, sizes.n_text_head
        self._head_size = sizes.n_text_state // heads
        # zeros: what is not yet written is multiplied by zero, and must be finite for that; untouched pages are free
        self._cross = self._zeros(2 * layers, count, heads, sizes.n_audio_ctx, self._head_size)
        self._past = self._zeros(2 * layers, count, heads, _CAPACITIES[0], self._head_size)
        self._lengths = np.zeros(count, np.int64)
        self._count = count
        self.used = 0

    @property
    def free(self) -> int:
        return self._count - self.used

    def warm_up(self) -> None:
        """One window on its way through both graphs, so that what they allocate is there before the first request."""
        slot = self.join(np.zeros((self._sizes.n_audio_ctx, self._sizes.n_audio_state), np.float32))
        self.prompt(slot, [0, 0], [1])
        self.step([0])
        self.leave(slot)

    def join(self, features: Array) -> int:
        """The slot of a new row for a window: features float32 [n_audio_ctx, n_audio_state], of either library."""
        slot = self.used
        self._write_cross(slot, features)
        self._lengths[slot] = 0
        self.used += 1
        return slot

    def leave(self, slot: int) -> None:
        """Frees a slot. The last row, if it is another, now lies there."""
        last = self.used - 1
        if slot != last:
            self._cross[:, slot] = self._cross[:, last]
            self._past[:, slot] = self._past[:, last]
            self._lengths[slot] = self._lengths[last]
        self.used = last

    def prompt(self, slot: int, tokens: Sequence[int], logits_at: Sequence[int]) -> Array:
        """Gives a row its prompt, in place of what it had: logits float32 [len(logits_at), n_vocab]."""
        logits, new = self._run(slice(slot, slot + 1), np.array([tokens]), np.array([logits_at]), is_new=True)
        self._make_room(max(len(tokens), self._longest()))
        self._past[:, slot, :, : len(tokens)] = new[:, 0]
        self._lengths[slot] = len(tokens)
        return logits[0]

    def step(self, tokens: Sequence[int]) -> Array:
        """Gives every row its next token: logits float32 [used, n_vocab]."""
        self._make_room(self._longest() + 1)
        rows = np.arange(self.used)
        at = np.zeros((self.used, 1), np.int64)
        logits, new = self._run(slice(0, self.used), np.array(tokens, np.int64)[:, None], at, is_new=False)
        at_rows, behind = self._memory.array(rows), self._memory.array(self._lengths[rows])
        self._past[:, at_rows, :, behind] = new[:, :, :, 0].swapaxes(0, 1)
        self._lengths[rows] += 1
        return logits[:, 0]

    def forget_after(self, used: int) -> None:
        """Frees all slots but the first few."""
        self.used = used

    def _run(self, rows: slice, tokens: np.ndarray, logits_at: np.ndarray, *, is_new: bool) -> tuple[Array, Array]:
        """(logits [rows, picks, n_vocab], keys and values of the new tokens [2 * layers, rows, heads, new, size])."""
        sizes, memory = self._sizes, self._memory
        lengths = np.zeros(len(tokens), np.int64) if is_new else self._lengths[rows]
        past = self._past[:, rows, :, :0] if is_new else self._past[:, rows]
        given = {"tokens": tokens, "lengths": lengths, "logits_at": logits_at}
        feeds = {name: memory.array(values) for name, values in given.items()}
        layers, heads = sizes.n_text_layer, sizes.n_text_head
        for i in range(layers):
            feeds[f"self_k_{i}"], feeds[f"self_v_{i}"] = past[i], past[layers + i]
            feeds[f"cross_k_{i}"], feeds[f"cross_v_{i}"] = self._cross[i, rows], self._cross[layers + i, rows]
        logits = memory.empty((*logits_at.shape, sizes.n_vocab), "float32")
        new = memory.empty((2 * layers, len(tokens), heads, tokens.shape[1], self._head_size), sizes.dtype)
        run_graph(memory, self._graphs.decoder, feeds, {"logits": logits, "new_kv": new})
        return logits, new

    def _write_cross(self, slot: int, features: Array) -> None:
        """Computes the audio's keys and values of all layers right into the slot."""
        if isinstance(features, np.ndarray):
            features = self._memory.array(np.ascontiguousarray(features, np.float32))
        layers = self._sizes.n_text_layer
        targets = {f"cross_k_{i}": self._cross[i, slot : slot + 1] for i in range(layers)}
        targets |= {f"cross_v_{i}": self._cross[layers + i, slot : slot + 1] for i in range(layers)}
        run_graph(self._memory, self._graphs.cross, {"features": features[None]}, targets)

    def _longest(self) -> int:
        return int(self._lengths[: self.used].max(initial=0))

    def _make_room(self, needed: int) -> None:
        """Lets the past hold `needed` tokens for each row; gives room back when a quarter of it would do."""
        has = self._past.shape[3]
        fits = next((c for c in _CAPACITIES if c >= needed), self._sizes.n_text_ctx)
        if has < needed or fits <= has // 4:
            past, kept = self._zeros(*self._past.shape[:3], fits, self._head_size), min(has, fits)
            past[:, : self.used, :, :kept] = self._past[:, : self.used, :, :kept]
            self._past = past

    def _zeros(self, *shape: int) -> Array:
        return self._memory.zeros(shape, self._sizes.dtype)
