"""Rules about versions: the policy, and the version folders that there are."""

from __future__ import annotations

from collections.abc import Iterator

from builder.catalog import Catalog, Entry
from builder.findings import Problem, rule

_WHY = "core: at least one version must be available under the version policy of model (ENS-12)"


@rule("TK801", "error", "no version that the policy admits", why=_WHY)
def no_version(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """A model needs a version folder, and one that its policy admits."""
    if entry.versions is None:
        return
    policy = entry.config.get("version_policy", {})
    there = ", ".join(str(one) for one in entry.versions)
    if not entry.versions:
        others = [one.name for one in entry.folder.versions] if entry.folder is not None else []
        yield Problem(
            path=("version_policy",),
            found=f"there is no version folder{f' ({others[0]} is none)' if others else ''}",
            expected="a folder named by a whole number from 1 is needed, for an ensemble an empty one",
            fix="Make the folder 1/ (with a file in it, or git forgets it)",
        )
    elif not entry.loaded_versions():
        wanted = policy.get("specific", {}).get("versions", ())
        asked = ", ".join(str(one) for one in wanted) or "no version"
        yield Problem(
            path=("version_policy", *policy),
            found=f"the policy asks for {asked}, there is {there}",
            expected="at least one version that exists is needed",
            fix=f"Write versions: [{there}]"
            if wanted
            else "Take version_policy out: the latest version is the default",
        )


@rule(
    "TK802",
    "warning",
    "policy asks for versions that are not there",
    why="The server serves the others, and says nothing",
    server="accepts",
)
def some_versions(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """Some of the versions of a specific policy do not exist."""
    wanted = entry.config.get("version_policy", {}).get("specific", {}).get("versions", ())
    if entry.versions is None or not set(wanted) & set(entry.versions):
        return
    absent = sorted(set(wanted) - set(entry.versions))
    if absent:
        yield Problem(
            path=("version_policy", "specific"),
            found=f"there is no version {', '.join(str(one) for one in absent)}",
            expected=f"versions among {', '.join(str(one) for one in entry.versions)} are needed",
            fix="Take the others out of the policy",
        )
