"""Where the decoder computes: numpy arrays on the host, or torch tensors on a GPU, and ONNX Runtime beside them.

In: arrays by numpy. Out: arrays of the place; graphs read and write them where they lie, so nothing of a running batch
leaves a GPU but the chosen tokens. The rest of the code here takes either kind of array: `library_of` says whose
functions it needs. torch is imported only where there is a GPU.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

Array = Any  # of numpy, or of torch


def library_of(array: Array) -> Any:
    """The module whose functions take this array: numpy, or torch."""
    return np if isinstance(array, np.ndarray) else sys.modules["torch"]


class Host:
    """Arrays of numpy, graphs on the CPU."""

    providers: Sequence[Any] = ("CPUExecutionProvider",)

    def array(self, values: np.ndarray) -> np.ndarray:
        """The values here; they may be shared."""
        return values

    def zeros(self, shape: Sequence[int], dtype: str) -> np.ndarray:
        return np.zeros(shape, dtype)

    def empty(self, shape: Sequence[int], dtype: str) -> np.ndarray:
        return np.empty(shape, dtype)

    def moved(self, tensor: Array) -> np.ndarray:
        """A copy of a tensor of torch's that lies on a GPU."""
        return tensor.cpu().numpy().copy()

    def settle(self) -> None:
        """Return when all that was begun is done: at once."""

    def place(self, array: np.ndarray) -> tuple[Any, ...]:
        """What ONNX Runtime must know to read or write an array."""
        return "cpu", 0, array.dtype.type, array.shape, array.ctypes.data


class Device:
    """Tensors of torch on one device, graphs on it.

    Args:
        name: As torch calls it: `cuda:0`. (Tests run this code on `cpu`.)

    Raises:
        RuntimeError: ONNX Runtime or torch of this environment cannot use a GPU.
    """

    def __init__(self, name: str) -> None:
        available = onnxruntime.get_available_providers()
        if name.startswith("cuda") and "CUDAExecutionProvider" not in available:
            raise RuntimeError(
                "whisper_decoder: its instance_group has KIND_GPU, the installed onnxruntime runs on CPUs only; "
                "install onnxruntime-gpu, or use KIND_CPU"
            )
        try:
            import torch
        except ImportError as error:
            raise RuntimeError(
                "whisper_decoder: its instance_group has KIND_GPU, and torch, which holds its caches there, cannot be "
                f"imported ({error}); install torch, or use KIND_CPU"
            ) from error
        self._torch = torch
        self.device = torch.device(name)
        self.number = self.device.index or 0
        if self.device.type == "cuda":  # libraries of CUDA that torch has not loaded; releases before 1.21 lack this
            getattr(onnxruntime, "preload_dlls", lambda: None)()
        self.providers: Sequence[Any] = (
            [("CUDAExecutionProvider", {"device_id": self.number}), "CPUExecutionProvider"]
            if self.device.type == "cuda"
            else ["CPUExecutionProvider"]
        )
        self._numpy = {torch.float32: np.float32, torch.float16: np.float16, torch.int64: np.int64}
        self._somewhere = torch.zeros(1, device=self.device)

    def array(self, values: np.ndarray) -> Array:
        """A copy of the values here."""
        return self._torch.tensor(values, device=self.device)

    def zeros(self, shape: Sequence[int], dtype: str) -> Array:
        return self._torch.zeros(tuple(shape), dtype=getattr(self._torch, dtype), device=self.device)

    def empty(self, shape: Sequence[int], dtype: str) -> Array:
        return self._torch.empty(tuple(shape), dtype=getattr(self._torch, dtype), device=self.device)

    def moved(self, tensor: Array) -> Array:
        """A copy here of a tensor that lies on a GPU; it is there when this returns."""
        copy = tensor.to(self.device, copy=True)
        self.settle()
        return copy

    def settle(self) -> None:
        """Return when all that torch has begun is done: ONNX Runtime and Triton do not wait for torch's stream."""
        if self.device.type == "cuda":
            self._torch.cuda.current_stream(self.device).synchronize()

    def place(self, array: Array) -> tuple[Any, ...]:
        """What ONNX Runtime must know to read or write a tensor. One without elements has no address: any will do."""
        address = array.data_ptr() or self._somewhere.data_ptr()
        return self.device.type, self.number, self._numpy[array.dtype], tuple(array.shape), address


Memory = Host | Device


def open_graph(memory: Memory, path: Path, options: Any) -> Any:
    """A session that computes where the memory is.

    Raises:
        RuntimeError: ONNX Runtime could not begin on the GPU. It only logs that, and would compute on the host.
    """
    session = onnxruntime.InferenceSession(str(path), options, providers=list(memory.providers))
    wanted = memory.providers[0] if isinstance(memory.providers[0], str) else memory.providers[0][0]
    if wanted not in session.get_providers():
        raise RuntimeError(
            f"whisper_decoder: {path.name} runs by {session.get_providers()[0]}, {wanted} is needed: ONNX Runtime "
            "could not load it, its own words are in the log; install the CUDA and cuDNN that this onnxruntime-gpu is "
            "for, or use KIND_CPU"
        )
    return session


def run_graph(memory: Memory, session: Any, feeds: Mapping[str, Array], targets: Mapping[str, Array]) -> None:
    """Runs a graph from arrays into arrays, all contiguous, all in `memory`; done when it returns."""
    binding = session.io_binding()
    for name, array in feeds.items():
        binding.bind_input(name, *memory.place(array))
    for name, array in targets.items():
        binding.bind_output(name, *memory.place(array))
    memory.settle()
    session.run_with_iobinding(binding)
