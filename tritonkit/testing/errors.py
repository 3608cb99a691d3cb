"""What can go wrong with a model in the stand-in.

TestingError
├── LoadError          model.py or config.pbtxt cannot be loaded, as the server could not either
├── ModelError         what a client of the server would see: `message` and `code`
│   └── RequestRefused     the request did not fit config.pbtxt and never reached the model
└── RuleBroken         the model did what the server does not notice, or answers by hanging
"""

from __future__ import annotations


class TestingError(Exception):
    """Something is wrong with the model under test."""

    __test__ = False  # not a test class, though pytest would take the name for one


class LoadError(TestingError):
    """The model cannot be loaded."""


class ModelError(TestingError):
    """The model answered with an error: `message` is what a client sees, `code` one of TritonError's names."""

    def __init__(self, message: str, code: str = "INTERNAL") -> None:
        super().__init__(message)
        self.message = message
        self.code = code


class RequestRefused(ModelError):
    """The request does not fit the configuration; the server refuses it with the same words."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "INVALID_ARG")


class RuleBroken(TestingError):
    """The model broke a rule of the Python backend that the server does not check."""
