"""Rules about a model's name and its backend."""

from __future__ import annotations

from collections.abc import Iterator

from builder.catalog import Catalog, Entry
from builder.findings import Problem, rule
from builder.rules.backends import PLATFORMS
from builder.rules.folders import is_stranger
from builder.tensors import did_you_mean


@rule(
    "TK111",
    "error",
    "model name that cannot be a folder's",
    why="A model's name is the name of its folder, and part of every address",
    server="accepts",
)
def unusable_name(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """An empty name, or one that leaves the repository."""
    bad = [sign for sign in ("/", "\\", "\0", "\n") if sign in entry.name]
    if bad or entry.name in ("", ".", "..") or entry.name.startswith("."):
        yield Problem(
            path=("name",),
            found=f"{entry.name!r} cannot be a folder in the repository",
            expected="a name of letters, digits, _ and - is needed",
            fix="Rename the model",
        )


@rule("TK112", "error", "config named differently from its folder", why="core: the folder must be named as the config")
def other_name(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """A `name` that is not the folder's."""
    name = entry.config.get("name", entry.name)
    if name not in ("", entry.name):
        yield Problem(
            path=("name",),
            found=f"the config says {name!r}, the folder is {entry.name!r}",
            expected="one name for both is needed",
            fix=f'Write name: "{entry.name}", or leave it out',
        )


@rule("TK113", "error", "platform and backend of an ensemble", why="core: model_config_utils.cc")
def ensemble_platform(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """An ensemble needs exactly `platform: "ensemble"`, no backend, and steps; nothing else may have steps (ENS-21)."""
    platform, backend = entry.config.get("platform", ""), entry.config.get("backend", "")
    scheduled = "ensemble_scheduling" in entry.config
    if scheduled and (platform != "ensemble" or backend):
        yield Problem(
            path=("platform",),
            found=f"it has steps with platform {platform!r} and backend {backend!r}",
            expected="platform ensemble and no backend are needed",
            fix='Write platform: "ensemble" and take the backend out',
        )
    elif platform == "ensemble" and backend:
        yield Problem(
            path=("backend",),
            found=f"platform ensemble beside backend {backend!r}",
            expected="an ensemble has no backend",
            fix="Take the backend out, or the platform",
        )
    elif platform == "ensemble" and not scheduled:
        yield Problem(
            path=("platform",),
            found="the platform is ensemble, and there are no steps",
            expected="ensemble_scheduling is needed",
            fix="Write its steps, or name a backend in place of the platform",
        )


@rule("TK114", "error", "no backend", why="core: a config must lead to a backend")
def no_backend(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """Neither backend nor platform, where no file can tell."""
    backend, platform = entry.config.get("backend", ""), entry.config.get("platform", "")
    if entry.is_ensemble or backend or is_stranger(entry):
        return
    if platform and platform not in PLATFORMS:
        yield Problem(
            path=("platform",),
            found=f"platform {platform!r} and no backend{did_you_mean(platform, PLATFORMS)}",
            expected="the backend that runs it is needed",
            fix=f'Write backend: "{platform}" in place of the platform',
        )
    elif not platform:
        yield Problem(
            path=("backend",),
            found="neither backend nor platform is given, and no file tells",
            expected="the backend that runs it is needed",
            fix='Write backend: "python", "onnxruntime", "tensorrt"...',
        )


@rule("TK115", "error", "backend and platform that do not belong together", why="core: unexpected platform and backend")
def other_backend(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """A platform of one backend beside the name of another."""
    platform, backend = entry.config.get("platform", ""), entry.config.get("backend", "")
    if backend in PLATFORMS.values() and platform and PLATFORMS.get(platform) != backend:
        yield Problem(
            path=("platform",),
            found=f"platform {platform} beside backend {backend}",
            expected="a platform of this backend, or none, is needed",
            fix="Take the platform out; the backend says it all",
        )


@rule(
    "TK117",
    "warning",
    "platform beside a backend that has none",
    why="The server passes over it (seen on 2.51)",
    server="accepts",
)
def idle_platform(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """A platform beside a backend whose platforms the server does not know, such as python."""
    platform, backend = entry.config.get("platform", ""), entry.config.get("backend", "")
    if backend and platform and backend not in PLATFORMS.values() and not entry.is_ensemble:
        yield Problem(
            path=("platform",),
            found=f"platform {platform} beside backend {backend}",
            expected=f"{backend} needs no platform",
            fix="Take the platform out",
        )
