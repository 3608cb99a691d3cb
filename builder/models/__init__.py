"""The shipped models: functions that return a `Model`, or the models of one network."""

from builder.models.llm import llm
from builder.models.prompt import prompt
from builder.models.whisper import Whisper, whisper
from builder.models.yolo import Yolo, yolo

__all__ = ["Whisper", "Yolo", "llm", "prompt", "whisper", "yolo"]
