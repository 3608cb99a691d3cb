"""What the tokens of one checkpoint mean.

In: `whisper.json` and `whisper.tiktoken`, written by the exporter. Out: prompts made of tokens, text made of tokens.
"""

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TASKS = ("transcribe", "translate")


class InputError(ValueError):
    """An input tensor is not what it should be; the text goes to the client."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """Numbers of the special tokens, and which tokens are never said.

    Attributes:
        timestamp_begin: 0.00 s; each token above is 0.02 s later.
        suppress: Never chosen: non-speech symbols and special tokens.
        suppress_at_start: Not chosen as the first one.
        languages: Language code -> token; empty for English-only checkpoints.
        language_names: English name -> code.
    """

    eot: int
    sot: int
    sot_prev: int
    transcribe: int
    translate: int
    no_speech: int
    timestamp_begin: int
    suppress: tuple[int, ...]
    suppress_at_start: tuple[int, ...]
    languages: Mapping[str, int]
    language_names: Mapping[str, str]

    @property
    def is_multilingual(self) -> bool:
        return bool(self.languages)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Sizes of the network that the served code needs.

    Attributes:
        dtype: Of the caches, as numpy calls it.
    """

    n_mels: int
    n_audio_ctx: int
    n_audio_state: int
    n_vocab: int
    n_text_ctx: int
    n_text_state: int
    n_text_head: int
    n_text_layer: int
    dtype: str


class Vocabulary:
    """Turns tokens into text."""

    def __init__(self, pieces: Mapping[int, bytes]) -> None:
        self._pieces = pieces

    def decode(self, tokens: Iterable[int]) -> str:
        """The text of the tokens; special tokens have none. Bytes that are no UTF-8 become U+FFFD."""
        return b"".join(self._pieces.get(token, b"") for token in tokens).decode("utf-8", errors="replace")


def read_description(path: Path) -> tuple[Sizes, Tokens]:
    """What `whisper.json` says."""
    known: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    sizes = {name: known["dimensions"][name] for name in Sizes.__slots__ if name != "dtype"}
    special = {name: known["tokens"][name] for name in Tokens.__slots__ if name in known["tokens"]}
    tokens = Tokens(
        **special,
        suppress=tuple(known["suppress"]),
        suppress_at_start=tuple(known["suppress_at_start"]),
        languages=known["languages"],
        language_names=known["language_names"],
    )
    return Sizes(**sizes, dtype=known["dtype"]), tokens


def read_vocabulary(path: Path) -> Vocabulary:
    """The text tokens of a `.tiktoken` file: a line for each, its bytes in base64 and its number."""
    lines = (line.split() for line in path.read_bytes().splitlines() if line)
    return Vocabulary({int(number): base64.b64decode(piece) for piece, number in lines})


def language_of(tokens: Tokens, text: str) -> str | None:
    """The language code meant by LANGUAGE; None: to be detected.

    Raises:
        InputError: No language of this checkpoint.
    """
    language = text.strip().lower()
    language = tokens.language_names.get(language, language)
    if not tokens.is_multilingual:
        if language in ("", "en", "english"):
            return "en"
        raise InputError(
            f'LANGUAGE: "{text}"; this checkpoint knows English only; '
            "leave it empty, or serve a multilingual checkpoint"
        )
    if language and language not in tokens.languages:
        known = ", ".join(tokens.languages)
        raise InputError(f'LANGUAGE: "{text}"; one of {known} is expected; leave it empty to have it detected')
    return language or None


def task_of(tokens: Tokens, text: str) -> str:
    """The task meant by TASK.

    Raises:
        InputError: No task, or one that this checkpoint can't do.
    """
    task = text.strip().lower() or TASKS[0]
    if task not in TASKS:
        raise InputError(f'TASK: "{text}"; {" or ".join(TASKS)} is expected; leave it empty for {TASKS[0]}')
    if task == "translate" and not tokens.is_multilingual:
        raise InputError(
            'TASK: "translate"; this checkpoint knows English only, so there is nothing to translate; '
            "leave it empty, or serve a multilingual checkpoint"
        )
    return task


def prompt_of(tokens: Tokens, language: str, task: str, before: Sequence[int], n_text_ctx: int) -> list[int]:
    """What the decoder is fed before it may speak: as much of the text before as it takes, language and task.

    English-only checkpoints know neither language nor task tokens.
    """
    past = [tokens.sot_prev, *before[-(n_text_ctx // 2 - 1) :]] if before else []
    if not tokens.is_multilingual:
        return [*past, tokens.sot]
    return [*past, tokens.sot, tokens.languages[language], getattr(tokens, task)]
