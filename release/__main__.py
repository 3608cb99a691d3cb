"""Commands `tritonkit release ...`: one model of a running server becomes another version of it.

Exit status: 0 good, 1 problems (the old version answers), 2 wrong usage.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from release.server import Manager

app = typer.Typer()
commands = typer.Typer(no_args_is_help=True, help="Replace one model of a running server: stage, compare, switch.")
app.add_typer(commands, name="release")

KEY = "TRITONKIT_MANAGEMENT_KEY"
Model = Annotated[str, typer.Argument(help="The model to replace")]
Repository = Annotated[Path, typer.Option(help="The repository that the server serves")]
Server = Annotated[str, typer.Option(envvar="TRITONKIT_URL", help="The server, grpc://host:port")]
KeyFile = Annotated[Path | None, typer.Option(help=f"Holds the key of the server's management; or set {KEY}")]
Source = Annotated[Path, typer.Argument(help="A folder with the files of the new version")]
Inputs = Annotated[list[Path], typer.Option("--inputs", help="Recorded inputs, .npz; may be repeated")]
Tolerance = Annotated[float, typer.Option(min=0, help="How much numbers may differ")]

REPOSITORY, SERVER = Path("model_repository"), "grpc://127.0.0.1:8001"


@commands.command()
def stage(
    model: Model, source: Source, repository: Repository = REPOSITORY, server: Server = SERVER, key_file: KeyFile = None
) -> None:
    """Put a new version beside the old one, and load it under a name of its own."""
    from release import steps

    with told():
        print(f"{steps.stage(repository, model, source, manager(server, key_file))}: loaded beside {model}")


@commands.command()
def compare(
    model: Model,
    inputs: Inputs,
    repository: Repository = REPOSITORY,
    server: Server = SERVER,
    tolerance: Tolerance = 1e-3,
) -> None:
    """Ask both the same, and tell where they differ."""
    with told():
        print(shadowed(repository, model, inputs, tolerance, server))


@commands.command()
def switch(
    model: Model, repository: Repository = REPOSITORY, server: Server = SERVER, key_file: KeyFile = None
) -> None:
    """Let the new version answer."""
    from release import steps

    with told():
        print(f"{model}: version {steps.switch(repository, model, manager(server, key_file))} answers")


@commands.command()
def rollback(
    model: Model, repository: Repository = REPOSITORY, server: Server = SERVER, key_file: KeyFile = None
) -> None:
    """Let the version before the last one answer again."""
    from release import steps

    with told():
        taken, active = steps.rollback(repository, model, manager(server, key_file))
        print(f"{model}: version {active} answers; version {taken} lies in {repository.name}.withdrawn")


@commands.command()
def drop(model: Model, repository: Repository = REPOSITORY, server: Server = SERVER, key_file: KeyFile = None) -> None:
    """Forget the new version."""
    from release import steps

    with told():
        steps.drop(repository, model, manager(server, key_file))


@commands.command()
def run(
    model: Model,
    source: Source,
    inputs: Inputs,
    repository: Repository = REPOSITORY,
    server: Server = SERVER,
    key_file: KeyFile = None,
    tolerance: Tolerance = 1e-3,
) -> None:
    """All of it: stage, compare, and switch if both answer the same; otherwise drop the new version."""
    from release import steps
    from release.errors import DifferentError

    with told():
        managed = manager(server, key_file)
        steps.stage(repository, model, source, managed)
        try:
            print(shadowed(repository, model, inputs, tolerance, server))
        except DifferentError:
            steps.drop(repository, model, managed)
            raise
        print(f"{model}: version {steps.switch(repository, model, managed)} answers")


@commands.command()
def status(model: Model, repository: Repository = REPOSITORY) -> None:
    """Tell the versions, and whether their files are as they were recorded."""
    from release import folders, lock, steps

    with told():
        folder = folders.model_folder(repository, model)
        recorded = lock.read(repository).get(model, {})
        for version in folders.versions(folder):
            steps.check_version(repository, model, version)
            known = "as recorded" if str(version) in recorded else "not recorded"
            answers = ", answers" if version == folders.active_version(folder) else ""
            print(f"{model}: version {version}, {known}{answers}")
        if folders.candidate_folder(folder).exists():
            print(f"{model}: a candidate is beside it")


def shadowed(repository: Path, model: str, inputs: list[Path], tolerance: float, server: str) -> str:
    """What the comparison found, in a line."""
    from clients import connect
    from release import steps

    with connect(server) as client:
        found = steps.shadow(repository, model, inputs, tolerance, client)
    times = f"{found.old_s:.2f} s before, {found.new_s:.2f} s now"
    return f"{model}: {found.recordings} recorded inputs are answered the same ({times})"


def manager(server: str, key_file: Path | None) -> Manager:
    """The management of a server."""
    from clients.endpoint import endpoint
    from release.errors import FolderError, LoadError
    from release.server import Manager

    where = endpoint(server)
    if where.scheme != "grpc":
        raise LoadError(server, "not the address of a gRPC endpoint", "grpc://host:port is needed")
    try:
        key = key_file.read_text(encoding="utf-8").strip() if key_file else os.environ.get(KEY, "")
    except OSError as error:
        raise FolderError(str(key_file), f"can't be read ({error.strerror})") from error
    return Manager(where.address, key)


@contextlib.contextmanager
def told() -> Iterator[None]:
    """Says what went wrong on stderr, and ends with 1."""
    from clients import ClientError
    from release.errors import ReleaseError

    try:
        yield
    except (ReleaseError, ClientError, OSError) as error:
        print(error, file=sys.stderr)
        raise typer.Exit(1) from None


if __name__ == "__main__":
    app()
