"""The language model that somebody chose, as a folder or name that vLLM can load.

In: `tiny-llama`, `gemma-3-270m`, the folder of a checkpoint, or a Hugging Face name.
Out: a folder, or the name as it is.
"""

from collections.abc import Callable
from pathlib import Path

from weights.errors import ExportError, FetchError
from weights.fetch import Say, fetch
from weights.llm import gemma
from weights.store import STAMP, export, hash_of_code

HERE = Path(__file__).parent
TINY = "tiny-llama"


def llm(choice: str, cache: Path, say: Say, *, accepts: Callable[[str], bool]) -> Path | str:
    """What to write as `model` into model.json.

    Args:
        choice: A packaged name, the folder of a checkpoint in Hugging Face's layout, or a name for vLLM to fetch.
        cache: The cache's root.
        say: Takes progress lines.
        accepts: Shown the terms of a model that has some; whether they are accepted. Asked once per cache.

    Raises:
        WeightsError: The terms were not accepted, the weights cannot be had, or the folder holds no checkpoint.
    """
    if choice == TINY:
        return HERE / "checkpoint"
    if choice == gemma.NAME:
        return _gemma(cache, say, accepts)
    folder = Path(choice)
    if folder.is_dir() and not (folder / "config.json").is_file():
        raise ExportError(f"{choice}: no config.json in it. Give the folder of a checkpoint in Hugging Face's layout.")
    return folder if folder.is_dir() else choice


def _gemma(cache: Path, say: Say, accepts: Callable[[str], bool]) -> Path:
    if not (cache / "exports" / gemma.NAME / STAMP).exists():
        (terms,) = fetch([gemma.TERMS], cache, say)
        if not accepts(gemma.terms_text(terms.read_text(encoding="utf-8"))):
            raise FetchError(
                f"{gemma.NAME}: its terms ({gemma.TERMS_URL}) were not accepted, so nothing was fetched. "
                f"Accept them, or take {TINY}."
            )
    (source,) = fetch([gemma.GGUF], cache, say)
    made_from = {
        "content": gemma.GGUF.sha256,
        "exporter": hash_of_code(HERE / "gemma.py"),
        "template": _template_hash(),
    }
    return export(gemma.NAME, made_from, lambda out: gemma.export_gemma(source, out), cache, say)


def _template_hash() -> str:
    return hash_of_code(HERE / "gemma_template.jinja")
