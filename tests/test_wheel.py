"""What somebody has who installed the package and has no checkout: the wheel's own files, and nothing beside them."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[1]
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked wheel of the tracked files."""
    folder = tmp_path_factory.mktemp("wheel")
    names = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=CHECKOUT, capture_output=True, text=True
    )
    for name in names.stdout.splitlines():
        if (CHECKOUT / name).is_file() and not name.startswith(("tests/", "docs/", ".")):
            (folder / "source" / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / "source" / name).write_bytes((CHECKOUT / name).read_bytes())
    pip = [sys.executable, "-m", "pip", "--quiet", "wheel", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--wheel-dir", str(folder), str(folder / "source")], check=True)
    (wheel,) = folder.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(folder / "site")
    return folder / "site"


@pytest.fixture
def run(installed: Path, tmp_path: Path) -> Run:
    """`tritonkit` of the wheel, in an empty folder."""

    def command(*words: str | Path) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": str(installed), "XDG_CACHE_HOME": str(tmp_path / "cache")}
        environment.pop("TRITONKIT_CACHE", None)
        line = [sys.executable, "-P", "-m", "tritonkit", *map(str, words)]
        return subprocess.run(line, cwd=tmp_path, env=environment, capture_output=True, text=True)

    return command


def test_the_wheel_builds_what_the_checkout_builds(run: Run, tmp_path: Path) -> None:
    built = run("build", "--no-weights", "assistant", "transcribe", "detect")
    assert built.returncode == 0, built.stdout + built.stderr
    for file in (CHECKOUT / "model_repository").rglob("*.pbtxt"):
        assert (tmp_path / file.relative_to(CHECKOUT)).read_text() == file.read_text()
    for file in (CHECKOUT / "model_repository").glob("*/1/*.py"):
        assert (tmp_path / file.relative_to(CHECKOUT)).read_text() == file.read_text()


def test_the_wheel_plans_and_says_how_it_would_serve(run: Run, tmp_path: Path) -> None:
    planned = run("plan", "detect", "--gpu", "L4")
    assert planned.returncode == 0, planned.stdout + planned.stderr
    assert run("build", "--no-weights", "detect").returncode == 0
    served = run("serve", "--gpu", "--dry-run", "--image", "stock-vllm", "model_repository")
    assert served.returncode == 0, served.stdout + served.stderr
    assert "/starter:/opt/tritonkit/starter" in served.stdout


def test_without_weights_the_wheel_says_where_it_looked(run: Run, tmp_path: Path) -> None:
    refused = run("build", "detect")
    assert refused.returncode == 1
    assert str(tmp_path / "cache" / "tritonkit" / "exports") in refused.stderr
    assert "tritonkit weights" in refused.stderr and not (tmp_path / "model_repository").exists()
