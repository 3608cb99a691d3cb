"""Where the files of the benchmark lie, and how ONNX Runtime opens them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import onnxruntime

ROOT = Path(__file__).parents[3]
REPOSITORY = ROOT / "model_repository"
CACHE = ROOT / ".cache" / "peers"
SMALL, LARGE = ROOT / "weights" / "llm" / "checkpoint", CACHE / "large-llama"
CHECKPOINT_VARIABLE = "PEERS_CHECKPOINT"  # of the language model, for every process of a run
WEIGHTS = Path(os.environ.get(CHECKPOINT_VARIABLE, SMALL))


def share_served_code(*models: str) -> None:
    """Lets the served models' own pure functions be imported: every contender does the same before and behind."""
    for model in models:
        folder = str(REPOSITORY / model / "1")
        if folder not in sys.path:
            sys.path.append(folder)


def cores() -> int:
    """CPU cores that may be used."""
    return len(os.sched_getaffinity(0))


def session(path: Path) -> onnxruntime.InferenceSession:
    """An ONNX file, opened with as many threads as there are cores."""
    onnxruntime.disable_telemetry_events()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = cores()
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
