"""openai-whisper's own checkpoints: a `.pt` file, or a name that the package knows.

In: a path or a name. Out: a `Checkpoint`. The package reads the file without running code from it (`weights_only`).
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from weights.errors import ExportError
from weights.whisper.checkpoint import Checkpoint, Dimensions


def read_openai(source: str | Path) -> Checkpoint:
    """The checkpoint in a `.pt` file, or of a name such as `tiny.en` or `turbo`.

    The package looks for a name's file in `~/.cache/whisper` and downloads it there if it is missing.

    Raises:
        ExportError: Neither a file nor a known name, not a Whisper checkpoint, or not to be downloaded.
    """
    import whisper

    if not Path(source).is_file() and str(source) not in whisper.available_models():
        raise ExportError(
            f"{source}: neither a file nor a checkpoint that openai-whisper knows. "
            f"A path, or one of {', '.join(whisper.available_models())} is expected."
        )
    try:
        network = whisper.load_model(str(source), device="cpu")
    except OSError as error:
        raise ExportError(
            f"{source}: openai-whisper could not download it ({error}). "
            "Put the file into ~/.cache/whisper, or give the path of a .pt file."
        ) from error
    except Exception as error:  # whatever torch says about a file that is no checkpoint
        raise ExportError(
            f"{source}: not an openai-whisper checkpoint ({error}). A .pt of that package is expected."
        ) from error
    arrays = {name: tensor.numpy() for name, tensor in network.state_dict().items()}
    return Checkpoint(
        source=Path(source).name, dimensions=Dimensions(**dataclasses.asdict(network.dims)), arrays=arrays
    )
