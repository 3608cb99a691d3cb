"""What the served decoder must know of a checkpoint beside its graphs: `whisper.json` and `whisper.tiktoken`.

In: dimensions. Out: two files. Token numbers, languages and suppressed tokens come from openai-whisper's tokenizer, so
that the server needs neither that package nor any tokenizer library: it only ever turns tokens into text.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from weights.whisper.checkpoint import Checkpoint, Dimensions

if TYPE_CHECKING:
    from whisper.tokenizer import Tokenizer


def write_description(checkpoint: Checkpoint, out: Path, dtype: np.dtype) -> None:
    """Writes `whisper.json` (sizes, tokens, languages) and `whisper.tiktoken` (bytes of every text token)."""
    description = describe(checkpoint, dtype)
    (out / "whisper.json").write_text(json.dumps(description, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    shutil.copyfile(_vocabulary_file(checkpoint.dimensions.is_multilingual), out / "whisper.tiktoken")


def describe(checkpoint: Checkpoint, dtype: np.dtype) -> dict[str, Any]:
    """The content of `whisper.json`."""
    from whisper.tokenizer import LANGUAGES, TO_LANGUAGE_CODE

    sizes = checkpoint.dimensions
    tokenizer = tokenizer_of(sizes)
    codes = list(LANGUAGES)[: sizes.n_languages] if sizes.is_multilingual else []
    specials = ("transcribe", "translate", "sot", "sot_prev", "sot_lm", "no_speech", "no_timestamps")
    return {
        "source": checkpoint.source,
        "dtype": np.dtype(dtype).name,
        "dimensions": dataclasses.asdict(sizes),
        "multilingual": sizes.is_multilingual,
        "tokens": {name: getattr(tokenizer, name) for name in ("eot", "timestamp_begin", *specials)},
        "suppress": sorted({*tokenizer.non_speech_tokens, *(getattr(tokenizer, name) for name in specials)}),
        "suppress_at_start": [*tokenizer.encode(" "), tokenizer.eot],
        "languages": {code: tokenizer.to_language_token(code) for code in codes},
        "language_names": {name: code for name, code in TO_LANGUAGE_CODE.items() if code in codes},
    }


def tokenizer_of(sizes: Dimensions) -> Tokenizer:
    """openai-whisper's tokenizer for a network of these sizes."""
    from whisper.tokenizer import get_tokenizer

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # the package leaves its vocabulary file open
        return get_tokenizer(sizes.is_multilingual, num_languages=sizes.n_languages)


def _vocabulary_file(multilingual: bool) -> Path:
    import whisper

    return Path(whisper.__file__).parent / "assets" / f"{'multilingual' if multilingual else 'gpt2'}.tiktoken"
