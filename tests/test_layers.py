"""Imports go one way: inside the builder down its flow only, and between packages as the design says."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# Each line may import from the lines above it, and modules of one line from each other.
LAYERS = (
    ("words", ("errors", "datatypes", "tensors", "fields", "releases", "launch", "examine", "sources")),
    ("protobuf", ("messages",)),
    ("declarations", ("model", "pipeline", "served", "requirements", "chains", "exclusive")),
    ("backends", ("backends",)),
    ("shipped models", ("models",)),
    ("shipped pipelines", ("pipelines",)),
    ("reading", ("pbtxt", "catalog", "folder")),
    (
        "thinking",
        ("findings", "graph", "decoupling", "shapes", "variants", "plan", "rules", "check", "memory", "handover"),
    ),
    ("pictures", ("draw", "page")),
    ("rendering", ("render",)),
    ("disk", ("contents", "manifest", "transaction", "repository", "environments")),
    ("reports", ("settings", "tuned", "fixes", "reports", "checking")),
    ("edges", ("loading", "commands", "__init__", "__main__")),
)
LEVEL = {module: level for level, (_, modules) in enumerate(LAYERS) for module in modules}
PURE = {"errors", "datatypes", "tensors", "examine", "graph", "decoupling", "variants", "findings", "plan", "rules"}
FORBIDDEN = {
    "release": {"builder", "embedded", "weights"},
    "builder": {"clients", "embedded", "load", "tritonkit"},
    "clients": {"builder", "embedded", "load", "weights"},
    "embedded": {"builder", "clients", "weights"},
    "weights": {"builder", "clients", "embedded"},
    "load": {"builder", "embedded", "weights", "tritonkit"},
    "starter": {"builder", "clients", "embedded", "weights", "tritonkit"},
}


def imported(file: Path) -> set[str]:
    """Full names of the modules that a file imports anywhere in it, except under TYPE_CHECKING."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    only_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    names: set[str] = set()
    for node in ast.walk(tree):
        if id(node) in only_types:
            continue
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names if node.module == "builder"}
    return names


def builder_modules() -> list[Path]:
    return sorted((ROOT / "builder").rglob("*.py"))


def top(file: Path) -> str:
    """The module of a file as the layers name it: `rules` for everything in that package."""
    parts = file.relative_to(ROOT / "builder").with_suffix("").parts
    return parts[0]


@pytest.mark.parametrize("file", builder_modules(), ids=lambda file: str(file.relative_to(ROOT)))
def test_builder_imports_go_down_the_flow_only(file: Path) -> None:
    assert top(file) in LEVEL, f"{top(file)} has no layer: give it one here"
    for name in imported(file):
        package, _, rest = name.partition(".")
        module = rest.partition(".")[0]
        if package == "builder" and module in LEVEL and top(file) != "__init__":
            assert LEVEL[module] <= LEVEL[top(file)], f"{file.name} imports {name} from further down the flow"


@pytest.mark.parametrize("package", sorted(FORBIDDEN))
def test_packages_that_do_not_know_each_other(package: str) -> None:
    for file in (ROOT / package).rglob("*.py"):
        for name in imported(file):
            assert name.split(".")[0] not in FORBIDDEN[package], f"{file.relative_to(ROOT)} imports {name}"


def test_only_the_edge_of_the_builder_knows_the_weights() -> None:
    users = {file.name for file in builder_modules() if any(name.startswith("weights") for name in imported(file))}
    assert users <= {"asked.py"}


def test_protobuf_is_imported_in_one_place() -> None:
    users = {
        str(file.relative_to(ROOT / "builder"))
        for file in builder_modules()
        if any(name.startswith(("google", "tritonclient")) for name in imported(file))
    }
    assert users == {"messages.py", "backends/onnx.py"}, "onnx.py only for the error of a file that does not parse"


@pytest.mark.parametrize("file", builder_modules(), ids=lambda file: str(file.relative_to(ROOT)))
def test_thinking_touches_nothing(file: Path) -> None:
    if top(file) in PURE:
        touching = {"os", "pathlib", "shutil", "subprocess", "socket", "tempfile", "random", "time"}
        assert not {name.split(".")[0] for name in imported(file)} & touching


def test_served_code_imports_nothing_of_the_project() -> None:
    for file in (ROOT / "model_repository").rglob("*.py"):
        packages = {name.split(".")[0] for name in imported(file)}
        assert not packages & {*FORBIDDEN, "tritonkit"}, f"{file.relative_to(ROOT)} imports {packages}"


def test_what_is_copied_into_images_needs_nothing_but_python() -> None:
    for file in (ROOT / "starter").rglob("*.py"):
        packages = {name.split(".")[0] for name in imported(file)} - {"starter"}
        assert packages <= sys.stdlib_module_names, f"{file.name} imports {packages - sys.stdlib_module_names}"
