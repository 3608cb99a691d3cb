"""One world on the real server and under the rules: every model on which the two do not agree.

What ends or hangs the server by our own word is left out here; each such mistake has a test with a start of its own.
When the server ends nevertheless, the repositories are halved until the one that does it is found.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from builder.findings import Finding
from fuzz.generate import Folder, World
from fuzz.oracle import Verdict, verdicts
from fuzz.verdict import expected

CODE = Path(__file__).with_name("identity.py").read_text(encoding="utf-8")
_ENDINGS = ("The server ends", "The server waits")


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """A model that loads though we say it does not, or the reverse; or one that ended the server (`verdict` None)."""

    model: str
    verdict: Verdict | None
    findings: tuple[Finding, ...]
    text: str

    def __str__(self) -> str:
        server = (
            "ends"
            if self.verdict is None
            else "loads it"
            if self.verdict.loads
            else f"refuses it: {self.verdict.words}"
        )
        ours = "; ".join(f"{one.code} {one}" for one in self.findings) or "no rule refuses it"
        return f"{self.model}\n  server: {server}\n  rules:  {ours}\n  config: {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of one world."""

    repositories: int
    models: int
    loading: int
    disagreements: tuple[Disagreement, ...]


def compare(world: World, folder: Path, timeout_s: float = 900.0) -> Outcome:
    """Write the world below `folder`, ask the server and the rules, and hold one against the other."""
    root = write(folder / "world", [*world.pool, *(model for one in world.repositories for model in one)])
    ours = expected(root)
    repositories = [one for one in world.repositories if not any(_is_ending(ours[model.name]) for model in one)]
    root = write(folder / "world", [*world.pool, *(model for one in repositories for model in one)])
    texts = {model.name: model.text or "" for one in (world.pool, *repositories) for model in one}
    ended: list[Disagreement] = []
    try:
        theirs = verdicts(root, timeout_s=timeout_s)
    except TimeoutError as error:
        ended = list(_culprits(world.pool, repositories, folder / "half"))
        if not ended:  # it ends now and then only; nobody must take that for agreement
            ended = [Disagreement(model="(whole world)", verdict=None, findings=(), text=str(error))]
        guilty = {one.model for one in ended}
        repositories = [one for one in repositories if not guilty & {model.name for model in one}]
        root = write(folder / "world", [*world.pool, *(model for one in repositories for model in one)])
        ours = expected(root)
        theirs = verdicts(root, timeout_s=timeout_s)
    return Outcome(
        repositories=len(repositories),
        models=len(theirs),
        loading=sum(one.loads for one in theirs.values()),
        disagreements=(
            *ended,
            *(
                Disagreement(model=name, verdict=verdict, findings=ours[name], text=texts[name])
                for name, verdict in theirs.items()
                if verdict.loads == bool(ours[name])
            ),
        ),
    )


def write(root: Path, folders: Sequence[Folder]) -> Path:
    """The folders on disk, in place of what was there."""
    shutil.rmtree(root, ignore_errors=True)
    for folder in folders:
        path = root / folder.name
        path.mkdir(parents=True)
        if folder.text is not None:
            (path / "config.pbtxt").write_bytes(folder.text.encode("utf-8", "surrogateescape"))
        for version in folder.versions:
            (path / version).mkdir()
            if folder.code:
                (path / version / "model.py").write_text(CODE, encoding="utf-8")
        for name, content in folder.extra.items():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_text(content, encoding="utf-8")
    return root


def _is_ending(findings: Sequence[Finding]) -> bool:
    return any(one.why.startswith(_ENDINGS) for one in findings)


def _culprits(pool: Sequence[Folder], repositories: Sequence[Sequence[Folder]], folder: Path) -> Iterator[Disagreement]:
    """The repositories that end the server, one start for each half."""
    root = write(folder, [*pool, *(model for one in repositories for model in one)])
    try:
        verdicts(root, timeout_s=120)
        return
    except TimeoutError:
        if len(repositories) > 1:
            middle = len(repositories) // 2
            yield from _culprits(pool, repositories[:middle], folder)
            yield from _culprits(pool, repositories[middle:], folder)
            return
    for model in repositories[0] if repositories else pool:
        yield Disagreement(model=model.name, verdict=None, findings=(), text=model.text or "")
