"""Prompt: transcript, detections and question to chat messages, by a template.

In: TRANSCRIPT, DETECTIONS, QUESTION, each a string that may be left out. Out: MESSAGES, chat messages as JSON.
"""

from __future__ import annotations

from builder.backends.python import python_model
from builder.model import Model
from builder.served import code_of


def prompt() -> Model:
    """The prompt model; its template is `template.jinja` beside its code."""
    return python_model(
        "prompt",
        code=code_of("prompt"),
        input=["TRANSCRIPT? STRING [1]", "DETECTIONS? STRING [1]", "QUESTION? STRING [1]"],
        output=["MESSAGES STRING [1]"],
        usual={"TRANSCRIPT": [500], "DETECTIONS": [2000], "QUESTION": [200], "MESSAGES": [4000]},
    )
