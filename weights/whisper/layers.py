"""The layers that both halves of Whisper share, as ONNX.

In: a graph, a checkpoint, a prefix of array names. Out: names of values. Shapes: B rows, T positions, D state, H heads.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weights.whisper.checkpoint import Checkpoint
from weights.whisper.onnx_graph import OnnxGraph

EPSILON = 1e-5  # torch's default, with which Whisper was trained


@dataclass(frozen=True, slots=True, kw_only=True)
class Layers:
    """A graph being written and the checkpoint that it takes its weights from."""

    graph: OnnxGraph
    checkpoint: Checkpoint
    heads: int

    def linear(self, name: str, x: str) -> str:
        """`x @ weight.T + bias`: [B, T, D] -> [B, T, out]."""
        return self._affine(name, x, self._weight(name), self._bias(name))

    def fused(self, name: str, x: str, parts: tuple[str, ...]) -> list[str]:
        """Several linear layers of one input as one product, then apart again: as many [B, T, D].

        The query's part carries the attention's scale, 1/sqrt(head size).
        """
        weights = np.concatenate([self._scaled(part, self._weight(f"{name}.{part}")) for part in parts])
        biases = np.concatenate([self._scaled(part, self._bias(f"{name}.{part}")) for part in parts])
        product = self._affine(f"{name}.{'_'.join(parts)}", x, weights, biases)
        if len(parts) == 1:
            return [product]
        return self.graph.ops("Split", product, results=len(parts), axis=-1, num_outputs=len(parts))

    def norm(self, name: str, x: str) -> str:
        """Layer norm over the last axis."""
        weight = self.graph.weight(f"{name}.weight", self.checkpoint.array(f"{name}.weight"))
        bias = self.graph.weight(f"{name}.bias", self.checkpoint.array(f"{name}.bias"))
        return self.graph.op("LayerNormalization", x, weight, bias, axis=-1, epsilon=EPSILON)

    def gelu(self, x: str) -> str:
        """Exact GELU: x/2 * (1 + erf(x / sqrt 2)), in the form that ONNX Runtime fuses into one kernel."""
        half = self.graph.weight("half", np.array(0.5))
        one = self.graph.weight("one", np.array(1.0))
        root = self.graph.weight("root_of_2", np.array(np.sqrt(2.0)))
        error = self.graph.op("Erf", self.graph.op("Div", x, root))
        return self.graph.op("Mul", self.graph.op("Mul", x, self.graph.op("Add", error, one)), half)

    def mlp(self, block: str, x: str) -> str:
        """The feed-forward part of a block, its norm and its residual included."""
        hidden = self.gelu(self.linear(f"{block}.mlp.0", self.norm(f"{block}.mlp_ln", x)))
        return self.graph.op("Add", x, self.linear(f"{block}.mlp.2", hidden))

    def split_heads(self, x: str, perm: tuple[int, int, int, int] = (0, 2, 1, 3)) -> str:
        """[B, T, D] -> [B, H, T, D/H]; another `perm` of (B, T, H, D/H) gives another order."""
        apart = self.graph.op("Reshape", x, self.graph.integers(0, 0, self.heads, -1))
        return self.graph.op("Transpose", apart, perm=perm)

    def join_heads(self, x: str) -> str:
        """[B, H, T, D/H] -> [B, T, D]."""
        turned = self.graph.op("Transpose", x, perm=(0, 2, 1, 3))
        return self.graph.op("Reshape", turned, self.graph.integers(0, 0, -1))

    def _affine(self, name: str, x: str, weight: np.ndarray, bias: np.ndarray) -> str:
        product = self.graph.op("MatMul", x, self.graph.weight(f"{name}.weight.T", weight.T))
        return self.graph.op("Add", product, self.graph.weight(f"{name}.bias", bias)) if bias.any() else product

    def _weight(self, name: str) -> np.ndarray:
        return self.checkpoint.array(f"{name}.weight").astype(np.float32)

    def _bias(self, name: str) -> np.ndarray:
        """The bias; zeros for keys, which have none."""
        if name.endswith(".key"):
            return np.zeros(self._weight(name).shape[0], np.float32)
        return self.checkpoint.array(f"{name}.bias").astype(np.float32)

    def _scaled(self, part: str, array: np.ndarray) -> np.ndarray:
        if part != "query":
            return array
        return array / np.sqrt(np.float32(self.checkpoint.dimensions.n_text_state // self.heads))
