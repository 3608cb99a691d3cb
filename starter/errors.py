"""What can go wrong while models are started.

StarterError
├── RepositoryError   the repository folder cannot be read as one
├── LoadError         the server refused to load a model; carries its words
└── ServerGone        the server ended, or does not answer

"""

from __future__ import annotations


class StarterError(Exception):
    """Anything that ends a start; `str()` is the whole message for a person."""


class RepositoryError(StarterError):
    """The repository folder cannot be read as one."""


class LoadError(StarterError):
    """The server refused to load a model."""


class ServerGone(StarterError):
    """The server ended, or does not answer."""
