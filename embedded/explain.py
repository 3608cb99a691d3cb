"""Why a model does not load, in plain words: from the server's own, with the place in the code and what to do."""

from __future__ import annotations

import re

from embedded.errors import LoadProblem

PREFIX = re.compile(r"(?:Internal|Invalid argument|Unavailable|Not found|Unsupported|Unknown): ")
FAILED_STEP = re.compile(r"depends on '(\S+)' which (?:has no loaded version|is not valid)")
FRAME = re.compile(r"^  (?!<frozen)(\S.*)\((\d+)\): (\S+)$", re.MULTILINE)

# The server's words (searched) -> what to do. The first that fits is taken.
ADVICE: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.DOTALL), advice)
    for pattern, advice in (
        (
            r"No module named '([\w.]+)'",
            r"Install the Python package that holds `\1` into the environment that runs the server, "
            r"or put \1.py beside model.py.",
        ),
        (
            r"cannot import name '(\w+)' from '([\w.]+)'",
            r"The installed `\2` is another version than this model was written for: install the one it needs.",
        ),
        (
            r"Python model file not found in '(.+)'",
            r"Put the model's code there, or remove the version folder.",
        ),
        (
            r"has no attribute 'TritonPythonModel'",
            r"model.py must define `class TritonPythonModel` with an `execute(self, requests)`.",
        ),
        (
            r"(?:failed to stat file|No such file or directory:?) '?([^'\n]+)'?",
            r"This file is missing: \1. Fetch or build the weights first (tritonkit build), or correct its name.",
        ),
        (
            r"has kind KIND_GPU but no GPUs are available",
            r"This server runs on CPUs: use KIND_CPU in config.pbtxt and keep KIND_GPU in configs/gpu.pbtxt.",
        ),
        (
            r'failed to read text proto.*has no field named "(\w+)"',
            r"Triton 2.51 does not know the field `\1`: it is misspelt or newer. `tritonkit check` says since when.",
        ),
        (
            r"failed to read text proto",
            r"config.pbtxt is not valid for Triton 2.51: a syntax error or a field it does not know. "
            r"`tritonkit check` names it.",
        ),
        (
            r"at least one version must be available",
            r"The model folder has no version folder: make a folder `1` with the model in it.",
        ),
        (
            r"unable to find backend library for backend '(\w+)'",
            r"The embedded server has the backends python, onnxruntime and ensemble. Serve `\1` models on a GPU image.",
        ),
        (
            r"Failed to increase the shared memory pool size",
            r"/dev/shm is full: make it larger (docker: --shm-size=2g) or use fewer instances.",
        ),
        (
            r"contains models that are not available or ambiguous: ([^;\n]+)",
            r"Add these models to the repository: \1.",
        ),
        (
            r"inconsistent data type: (\w+) is inferred from model (\S+) while (\w+) is inferred from model (\S+)",
            r"Give the tensor one data type at both ends, or add a step that converts.",
        ),
        (
            r"receives inputs originated from different decoupled models",
            r"A streamed tensor and another one meet in this ensemble. Pass the other one through the streaming model.",
        ),
        (
            r"the model expects .* dimensions|model configuration specifies|configuration expects datatype"
            r"|unexpected inference (?:input|output)",
            r"config.pbtxt does not agree with the ONNX file: build the repository again, or correct the config.",
        ),
        (
            r"first dimension must be -1",
            r"The ONNX file has a fixed batch: export it with a dynamic first dimension, or set max_batch_size: 0.",
        ),
    )
)


def explain(model: str, words: str) -> LoadProblem:
    """The problem of `model` from what the server said about it."""
    if step := FAILED_STEP.search(words):
        # The server repeats all about the step here; the step has a problem of its own.
        return LoadProblem(
            model=model,
            words=f"it depends on '{step[1]}', which does not load",
            advice=f"Make `{step[1]}` load first; the reason it does not is its own.",
        )
    message, _, trace = words.partition("\n\nAt:\n")
    message = PREFIX.sub("", message, count=1).strip().rstrip(";")
    # A traceback of the python backend names the innermost place first.
    frame = FRAME.search(f"\n{trace}")
    return LoadProblem(
        model=model,
        words=message,
        where=f"{frame[1]}, line {frame[2]}, in {frame[3]}" if frame else "",
        advice=advice_for(words),
    )


def advice_for(words: str) -> str:
    """What to do about it; empty when nothing is known."""
    for pattern, advice in ADVICE:
        if found := pattern.search(words):
            return found.expand(advice)
    return ""
