"""Commands of the builder: build, diff, check, draw. Arguments, environment, printing and exit status live here."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from builder.commands.asked import (
    Llm,
    Names,
    Out,
    Set,
    Target,
    Whisper,
    Yolo,
    exports,
    pipelines_of,
    problems_told,
    release_of,
    tell,
)
from builder.commands.draw import draw
from builder.commands.engines import engines
from builder.commands.plan import plan

if TYPE_CHECKING:
    from builder.repository import Difference

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None)

DEFAULT_OUT = Path("model_repository")
app.command()(engines)
app.command()(plan)
app.command()(draw)


@app.command()
def build(
    pipelines: Names = None,
    out: Out = DEFAULT_OUT,
    weights: Annotated[bool, typer.Option("--weights/--no-weights", help="link what checkpoints are made into")] = True,
    only: Annotated[bool, typer.Option("--only", help="remove what earlier builds wrote for other pipelines")] = False,
    force: Annotated[bool, typer.Option("--force", help="overwrite copied files that were edited there")] = False,
    whisper: Whisper = None,
    yolo: Yolo = None,
    llm: Llm = None,
    set_: Set = None,
    target: Target = "embedded",
    gpu: Annotated[str | None, typer.Option("--gpu", help="fill in what `plan` works out for it: L4, 2xH100")] = None,
    engine: Annotated[list[str] | None, typer.Option("--engine", help="with --gpu: KEY=VALUE of vLLM")] = None,
    chains: Annotated[int, typer.Option("--chains", min=1, help="each pipeline once on each of so many GPUs")] = 1,
    others: Annotated[
        int | None,
        typer.Option("--others-on", min=1, help="GPU of all models but language models, which have those from 0 on"),
    ] = None,
    turns: Annotated[
        list[str] | None, typer.Option("--one-at-a-time", help="model that takes turns with the others named so")
    ] = None,
) -> None:
    """Write the model repository of some pipelines: checked first, then everything or nothing."""
    from builder.chains import placed
    from builder.check import check_pipelines
    from builder.commands.plan import planned_for
    from builder.environments import make_environments
    from builder.exclusive import taking_turns
    from builder.repository import write_repository

    with problems_told():
        asked = taking_turns(pipelines_of(pipelines, whisper, yolo, llm, set_), turns or ())
        found = placed(asked, chains=chains, others=others)
        plan, findings = check_pipelines(found, release_of(target))
        tell(findings)
        if gpu is not None:
            plan = planned_for(plan, gpu, engine, exports())
        if weights:
            say = lambda line: print(line, file=sys.stderr)  # noqa: E731
            make_environments(plan.models, exports(), say, target=plan.target)
        changed = write_repository(
            plan, out, exports=exports(), weights=weights, only=only or not pipelines, force=force
        )
    _print_changes(changed)
    for model in plan.models:
        if model.tensorrt is not None and weights and not (exports() / model.tensorrt.target).is_file():
            print(f"{model.name}: its TensorRT plan is not built yet: tritonkit engines, then build", file=sys.stderr)
    names = ", ".join(plan.pipelines)
    print(f"{out}: {names}: {f'{len(changed)} files written' if changed else 'nothing to do'}")


def _print_changes(changed: Sequence[Difference], each: int = 12) -> None:
    """A line for each file, or for each model when there are many."""
    kinds = {"missing": "new", "different": "changed", "stale": "removed", "foreign": "overwritten"}
    if len(changed) <= each:
        for one in changed:
            print(f"{kinds[one.kind]:<11} {one.path}")
        return
    counts = Counter((kinds[one.kind], one.path.split("/")[0]) for one in changed)
    for (kind, model), count in counts.items():
        print(f"{kind:<11} {model} ({count} file{'s' if count > 1 else ''})")


@app.command()
def diff(
    pipelines: Names = None,
    out: Out = DEFAULT_OUT,
    weights: Annotated[bool, typer.Option("--weights/--no-weights", help="look at linked files, too")] = False,
    whisper: Whisper = None,
    yolo: Yolo = None,
    llm: Llm = None,
    set_: Set = None,
    target: Target = "embedded",
) -> None:
    """Say what in a repository is not as `build` would write it. Exit status 1 if anything is."""
    from builder.check import checked_plan
    from builder.repository import compare_repository

    with problems_told():
        plan = checked_plan(pipelines_of(pipelines, whisper, yolo, llm, set_), release_of(target))
        state = compare_repository(plan, out, exports=exports(), weights=weights, only=not pipelines)
    for one in state.differences:
        print(f"{one.kind:<10} {one.path}{f': {one.reason}' if one.reason else ''}")
        if one.content is not None and one.content.kind == "text" and one.kind == "different":
            _print_lines((out / one.path).read_text(encoding="utf-8"), one.content.text.decode(), one.path)
    if state.differences:
        print(
            f"{len(state.differences)} files are not as they should be; `tritonkit build` writes them", file=sys.stderr
        )
        raise typer.Exit(1)


@app.command()
def check(
    subjects: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PIPELINES | DIR]",
            help="shipped pipelines, path/to/file.py[:name], or the folder of a model repository; "
            "all shipped pipelines if nothing is named",
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option("--target", help="the server: embedded (if not given), 24.10, 26.07-vllm, 26.07-vllm+py3..."),
    ] = None,
    profile: Annotated[
        str | None, typer.Option("--profile", help="hardware: cpu or gpu; for a folder cpu if not given")
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="print one JSON object")] = False,
    sarif: Annotated[bool, typer.Option("--sarif", help="print SARIF 2.1.0, for code hosts")] = False,
    launch: Annotated[
        str | None, typer.Option("--launch", help="the line that starts the server over the folder, to be checked too")
    ] = None,
    fix: Annotated[
        bool, typer.Option("--fix", help="correct what can be corrected safely, and show the change")
    ] = False,
    whisper: Whisper = None,
    yolo: Yolo = None,
    llm: Llm = None,
    set_: Set = None,
) -> None:
    """Ask every rule about pipelines or any model repository, and tell everything at once. Status 1 on an error."""
    from builder.checking import check_folder, check_named_pipelines, fix_folder

    if json_ and sarif:
        raise typer.BadParameter("--json and --sarif cannot be given together")
    if profile not in (None, "cpu", "gpu"):
        raise typer.BadParameter(f"{profile!r}: cpu or gpu is needed", param_hint="--profile")
    if target is not None:
        release_of(target)
    folders = [subject for subject in subjects or () if Path(subject).is_dir()]
    if folders and len(subjects or ()) > 1:
        raise typer.BadParameter("one folder, or pipelines, can be named")
    if launch is not None and not folders:
        raise typer.BadParameter("the folder of a repository is needed", param_hint="--launch")
    if fix and not folders:
        raise typer.BadParameter(
            "the folder of a repository is needed; of pipelines correct the Python", param_hint="--fix"
        )
    with problems_told():
        if folders:
            if fix:
                for change in fix_folder(Path(folders[0]), target, profile):
                    print(change.diff(), end="", file=sys.stderr if json_ or sarif else sys.stdout)
            report = check_folder(Path(folders[0]), target, profile, launch)
        else:
            pipelines = pipelines_of(subjects, whisper, yolo, llm, set_)
            report = check_named_pipelines(pipelines, target or "embedded", profile)
    if json_:
        from builder.reports.jsonform import json_report

        print(json_report(report))
    elif sarif:
        from builder.reports.sarif import sarif_report
        from builder.rules import ALL_RULES

        print(sarif_report(report, ALL_RULES, folders[0] if folders else ""))
    else:
        from rich.console import Console

        from builder.reports.text import print_report

        print_report(report, Console(stderr=bool(report.findings), highlight=False, soft_wrap=True))
    if report.count("error"):
        raise typer.Exit(1)


@app.command()
def explain(
    code: Annotated[str | None, typer.Argument(help="a code, such as TK401")] = None,
    all_: Annotated[bool, typer.Option("--all", help="print the page of all codes, as Markdown")] = False,
) -> None:
    """Say what a code means, what a server does about it, and how to switch it off."""
    from builder.reports.page import codes_page, explanation
    from builder.rules import ALL_RULES
    from builder.tensors import did_you_mean

    if all_ == (code is not None):
        raise typer.BadParameter("a code, or --all, is needed")
    if all_:
        print(codes_page(ALL_RULES), end="")
        return
    wanted = str(code).upper()
    known = {rule.code: rule for rule in ALL_RULES}
    if wanted not in known:
        raise typer.BadParameter(f"no rule has the code {code}{did_you_mean(wanted, known)}", param_hint="CODE")
    print(explanation(known[wanted]))


def _print_lines(before: str, after: str, path: str) -> None:
    import difflib

    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), path, "as built", lineterm="", n=1)
    print("\n".join(f"  {line}" for line in lines))


def main() -> Any:
    """Run the commands."""
    return app()


if __name__ == "__main__":
    main()
