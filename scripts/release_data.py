"""Hold builder/data/model_config_fields.json against tritonclient wheels, and bring it up to date.

Each wheel carries the ModelConfig message of one Triton release. For every version named, the wheel is fetched with
pip, its descriptor is read without importing it, and the fields and enum values that the table gives for that release
are compared with the wheel's. `--write` adds what is new, as of the first version named that has it.

    python scripts/release_data.py 2.51.0 2.73.0
    python scripts/release_data.py --container 26.10=2.74.0 2.74.0 --write
"""

from __future__ import annotations

import argparse
import ast
import json
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)

TABLE = Path(__file__).parents[1] / "builder" / "data" / "model_config_fields.json"
MEMBER = "tritonclient/grpc/model_config_pb2.py"
PACKAGE = "inference."


def main() -> int:
    """Compare, and write if asked; 1 when the table and a wheel differ and nothing was written."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("versions", nargs="+", help="Triton versions, such as 2.51.0")
    parser.add_argument(
        "--container", action="append", default=[], metavar="TAG=VERSION", help="a release not yet known"
    )
    parser.add_argument("--write", action="store_true", help="write the table")
    wanted = parser.parse_args()
    table = json.loads(TABLE.read_text(encoding="utf-8"))
    for pair in wanted.container:
        tag, _, version = pair.partition("=")
        add_container(table, tag, version)
    differences = 0
    for version in sorted(wanted.versions, key=numbers):
        fields, values = read_wheel(version)
        for line in compare(table, version, fields, values):
            differences += 1
            print(f"{version}: {line}")
        if wanted.write:
            add(table["fields"], fields, table, version)
            add(table["enum_values"], values, table, version)
        if version not in table["verified_against_wheels"]:
            table["verified_against_wheels"] = sorted([*table["verified_against_wheels"], version], key=numbers)
    print(f"{len(wanted.versions)} wheels, {differences} differences")
    if wanted.write:
        TABLE.write_text(json.dumps(table, indent=1, ensure_ascii=False, sort_keys=False) + "\n", encoding="utf-8")
        return 0
    return int(differences > 0)


def numbers(version: str) -> tuple[int, ...]:
    """(2, 51, 0) of `2.51.0`."""
    return tuple(int(part) for part in version.split("."))


def add_container(table: dict[str, Any], tag: str, version: str) -> None:
    """A release that the table does not have."""
    if all(row["container"] != tag for row in table["containers"]):
        table["containers"].append({"container": tag, "triton": version})
        table["containers"].sort(key=lambda row: numbers(row["container"]))


def container_of(table: Mapping[str, Any], version: str) -> str:
    """The tag of a version.

    Raises:
        SystemExit: the table has none.
    """
    for row in table["containers"]:
        if row["triton"] == version:
            return str(row["container"])
    raise SystemExit(f"{version}: no container tag is known for it; name one with --container TAG={version}")


def read_wheel(version: str) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
    """Fields and enum values of a release's ModelConfig, by path."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--only-binary=:all:",
            "--dest",
            folder,
        ]
        subprocess.run([*command, f"tritonclient=={version}"], check=True)
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            # Wheels with programs in them keep the package in a folder of their own.
            (member,) = (name for name in archive.namelist() if name.endswith(MEMBER))
            source = archive.read(member).decode("utf-8")
    descriptor = FileDescriptorProto.FromString(serialized_descriptor(source))
    fields: dict[str, dict[str, Any]] = {}
    values: dict[str, dict[str, Any]] = {}
    for message in descriptor.message_type:
        fields.update(message_fields(message, ""))
        values.update(message_enums(message, ""))
    for enum in descriptor.enum_type:
        values.update(enum_values(enum, ""))
    return fields, values


def serialized_descriptor(source: str) -> bytes:
    """The descriptor in a generated module, old or new: the largest bytes literal."""
    literals = [node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)]
    return max((value for value in literals if isinstance(value, bytes)), key=len)


def message_fields(message: DescriptorProto, prefix: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every field of a message and of those inside it."""
    name = f"{prefix}{message.name}"
    for field in message.field:
        oneof = message.oneof_decl[field.oneof_index].name if field.HasField("oneof_index") else None
        yield f"{name}.{field.name}", {"number": field.number, "type": type_name(field), "oneof": oneof}
    for inner in message.nested_type:
        yield from message_fields(inner, f"{name}.")


def message_enums(message: DescriptorProto, prefix: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every enum value inside a message."""
    name = f"{prefix}{message.name}"
    for enum in message.enum_type:
        yield from enum_values(enum, f"{name}.")
    for inner in message.nested_type:
        yield from message_enums(inner, f"{name}.")


def enum_values(enum: EnumDescriptorProto, prefix: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every value of an enum."""
    for value in enum.value:
        yield f"{prefix}{enum.name}.{value.name}", {"number": value.number}


def type_name(field: FieldDescriptorProto) -> str:
    """`int64`, `repeated ModelInput`..."""
    scalar = FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower()
    name = field.type_name.lstrip(".").removeprefix(PACKAGE) if field.type_name else scalar
    return f"repeated {name}" if field.label == FieldDescriptorProto.LABEL_REPEATED else name


def compare(
    table: Mapping[str, Any], version: str, fields: Mapping[str, Any], values: Mapping[str, Any]
) -> Iterator[str]:
    """What the table says of a release and its wheel does not, and the reverse."""
    for key, found in (("fields", fields), ("enum_values", values)):
        expected = {
            path
            for path, row in table[key].items()
            if not row["since_triton"] or numbers(row["since_triton"]) <= numbers(version)
        }
        yield from (f"{path} is in the wheel and not in the table" for path in sorted(found.keys() - expected))
        yield from (f"{path} is in the table and not in the wheel" for path in sorted(expected - found.keys()))
        for path in sorted(found.keys() & expected):
            if found[path]["number"] != table[key][path]["number"]:
                yield f"{path} has number {found[path]['number']}, in the table {table[key][path]['number']}"


def add(rows: dict[str, Any], found: Mapping[str, dict[str, Any]], table: Mapping[str, Any], version: str) -> None:
    """What is new, as of this version."""
    for path in sorted(found.keys() - rows.keys()):
        rows[path] = {"since_container": container_of(table, version), "since_triton": version, **found[path]}


if __name__ == "__main__":
    raise SystemExit(main())
