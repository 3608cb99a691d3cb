"""docs/security.md names a test for each of its lines; all of them must be there."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)))
LINES = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith(("| danger", "| ---"))]


@pytest.mark.parametrize(("file", "name"), NAMED, ids=[name for _, name in NAMED])
def test_every_test_that_the_page_names_is_there(file: str, name: str) -> None:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    assert name in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_every_line_of_the_page_names_a_test() -> None:
    assert len(LINES) > 10
    assert all("::test_" in line for line in LINES)


def test_no_model_trusts_code_that_comes_with_its_weights() -> None:
    settings = list((ROOT / "model_repository").glob("*/*/model.json"))
    assert settings
    for file in settings:
        assert not json.loads(file.read_text(encoding="utf-8")).get("trust_remote_code"), file
    sources = [file for name in ("builder", "weights", "model_repository") for file in (ROOT / name).rglob("*.py")]
    found = [file for file in sources if "trust_remote_code=True" in file.read_text(encoding="utf-8").replace(" ", "")]
    assert not found


def test_verify_audits_the_locked_packages() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    verify = re.search(r"^verify:([^#\n]*)", makefile, re.MULTILINE)
    assert verify and "audit" in verify[1].split()
    assert re.search(r"^audit:.*\n\t@\.venv/bin/python scripts/audit\.py$", makefile, re.MULTILINE)


def test_every_packaged_checkpoint_is_pinned_by_hash() -> None:
    from weights.fetch import PackagedFile
    from weights.sources import WHISPER, YOLO

    files = [*WHISPER.values(), *(file for group in YOLO.values() for file in group)]
    assert len(files) >= 5 and all(isinstance(one, PackagedFile) for one in files)
    for one in files:
        assert re.fullmatch(r"[0-9a-f]{64}", one.sha256), one.name
        assert all("==" in package.requirement for package, _ in one.parts), one.name


SECRET = re.compile(
    r"hf_[A-Za-z0-9]{30}|\bsk-[A-Za-z0-9_-]{20}|AKIA[0-9A-Z]{16}|-----BEGIN [A-Z ]*PRIVATE KEY|"
    r"(?i:password|api_?keys?|token|secret)[\"']?\s*[:=]\s*[\"']?[A-Za-z0-9+/]{16,}[\"']?\s*$",
    re.MULTILINE,
)
CONFIGS = ("*.pbtxt", "*.json", "*.yaml", "*.yml", "*.env", "Dockerfile", "*.toml", "*.sh")


def test_no_config_holds_a_secret() -> None:
    places = ("model_repository", "docker", "deploy", "scripts", ".ci")
    files = [file for place in places for pattern in CONFIGS for file in (ROOT / place).rglob(pattern)]
    assert len(files) > 30
    for file in files:
        found = SECRET.search(file.read_text(encoding="utf-8", errors="replace"))
        assert found is None, f"{file}: {found}"


def test_a_secret_would_be_found() -> None:
    for line in ("HF_TOKEN=hf_" + "a" * 34, "password: " + "b" * 20, "-----BEGIN RSA PRIVATE KEY-----"):
        assert SECRET.search(f"x: 1\n{line}\n"), line
