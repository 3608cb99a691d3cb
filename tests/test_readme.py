"""What the README shows is what the repository holds: its code is the examples', which are tests of their own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(?:python|sh)\n(.*?)\n```", README, flags=re.DOTALL)


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_every_block_of_code_in_the_readme_is_an_example_that_is_run(checkout: Path, number: int) -> None:
    examples = {
        path: path.read_text(encoding="utf-8").strip() for path in (checkout / "examples").rglob("*") if _is_text(path)
    }
    assert BLOCKS[number].strip() in examples.values(), f"no file below examples/ holds:\n{BLOCKS[number][:300]}"


def test_every_link_of_the_readme_leads_somewhere(checkout: Path) -> None:
    targets = [target.partition("#")[0] for target in re.findall(r"\]\(([^)]+)\)", README)]
    assert [one for one in targets if one and "://" not in one and not (checkout / one).exists()] == []


def test_every_make_target_of_the_readme_exists(checkout: Path) -> None:
    makefile = (checkout / "Makefile").read_text(encoding="utf-8")
    named = set(re.findall(r"`?make ([a-z][a-z-]+)", README))
    assert [name for name in sorted(named) if not re.search(rf"^{name}:", makefile, flags=re.MULTILINE)] == []


def test_the_code_of_the_page_on_testing_runs(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(checkout)
    page = (checkout / "docs" / "testing.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    exec(compile(code, "docs/testing.md", "exec"), {})


def _is_text(path: Path) -> bool:
    return path.suffix in (".py", ".sh")
