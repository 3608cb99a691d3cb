"""Rules about TensorRT plans: built for one release of TensorRT and one kind of GPU (YOL-07).

A plan cannot be read without TensorRT, so what it was built with is written beside it, in `plan.json`:
`{"container": "24.10", "compute_capability": "8.9"}`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from builder.catalog import Catalog, Entry
from builder.findings import Problem, rule
from builder.rules.backends import backend_of, model_file

_WHY = "trt: a plan loads only in the release of TensorRT, and on the kind of GPU, that it was built with (YOL-07)"


@rule("TK861", "error", "TensorRT plan of another release", why=_WHY)
def other_release(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """`plan.json` beside a plan names another container than the target."""
    for file, manifest in _plans(entry):
        built = manifest.get("container") if manifest is not None else None
        if isinstance(built, str) and built != catalog.target.container and not manifest_is_portable(manifest):
            yield Problem(
                file=file,
                found=f"the plan was built with {built}",
                expected=f"one built with {catalog.target.container} is needed",
                fix=f"Build it again in the image {catalog.target.container}-py3",
            )


@rule(
    "TK862",
    "warning",
    "TensorRT plan of unknown origin",
    why=_WHY,
    server="accepts",
)
def no_manifest(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """A plan without `plan.json`: nobody can say whether it loads."""
    for file, manifest in _plans(entry):
        if manifest is None or not isinstance(manifest.get("container"), str):
            yield Problem(
                file=file,
                found="there is no plan.json beside the plan",
                expected="what it was built with has to be known",
                fix='Write plan.json: {"container": "24.10", "compute_capability": "8.9"}, as it was built',
            )


def manifest_is_portable(manifest: Mapping[str, object] | None) -> bool:
    """Whether the plan was built to load in later releases."""
    return manifest is not None and manifest.get("version_compatible") is True


def _plans(entry: Entry) -> Iterator[tuple[str, Mapping[str, object] | None]]:
    if entry.folder is None or backend_of(entry.config) != "tensorrt":
        return
    name = str(model_file(entry.config))
    for version in entry.folder.versions:
        if version.number in entry.loaded_versions() and name in version.files:
            yield f"{entry.name}/{version.name}/{name}", entry.folder.json_files.get(f"{version.name}/plan.json")
