"""The value of one token in a `config.pbtxt`: what protobuf's text format takes for each scalar type and enum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from builder.fields import FieldInfo
from builder.pbtxt.enums import enum_numbers
from builder.pbtxt.tokens import IDENTIFIER, NUMBER
from builder.pbtxt.values import Message, Mistyped, ProblemKind

BOOLS = {"true": True, "True": True, "t": True, "false": False, "False": False, "f": False}
_RANGES = {
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint64": (0, 2**64 - 1),
}


@dataclass(frozen=True, slots=True)
class Mistake:
    """What is wrong with the value of a field. name, message: what the problem is about, as in `Problem`."""

    kind: ProblemKind
    found: str
    expected: str
    name: str
    message: str = ""


Read = tuple[Any, Mistake | None]


def scalar(info: FieldInfo, kind: int, token: str, negative: bool) -> Read:
    """The value that a token has in a scalar field that is no string, and what is wrong with it."""
    if info.kind == "enum":
        return _enum(info, kind, token, negative)
    if info.type == "bool":
        return _bool(info, kind, token, negative)
    if info.type in ("float", "double"):
        return _float(info, kind, token, negative)
    return _whole_number(info, kind, token, negative)


def wrong_type(info: FieldInfo, token: str, expected: str) -> tuple[Mistyped, Mistake]:
    """A value of another type than the field's."""
    found = f"{info.name}: {token[:40]}"
    return Mistyped(token[:40]), Mistake(ProblemKind.WRONG_TYPE, found, expected, info.name, info.message)


def _bool(info: FieldInfo, kind: int, token: str, negative: bool) -> Read:
    if kind == IDENTIFIER and token in BOOLS and not negative:
        return BOOLS[token], None
    number = integer(token) if kind == NUMBER else None
    if number in (0, 1) and not negative:
        return bool(number), None
    return wrong_type(info, token, "true or false is needed")


def _whole_number(info: FieldInfo, kind: int, token: str, negative: bool) -> Read:
    number = integer(token) if kind == NUMBER else None
    if number is None:
        return wrong_type(info, token, "a whole number is needed")
    number = -number if negative else number
    low, high = _RANGES[info.type]
    if low <= number <= high:
        return number, None
    expected = f"{info.type} reaches from {low} to {high}"
    mistake = Mistake(ProblemKind.OUT_OF_RANGE, f"{info.name}: {token[:40]}", expected, info.name)
    return Mistyped(f"{'-' if negative else ''}{token[:40]}"), mistake


def _float(info: FieldInfo, kind: int, token: str, negative: bool) -> Read:
    sign = -1.0 if negative else 1.0
    if kind == IDENTIFIER and token.lower() in ("inf", "infinity", "nan"):
        return sign * float(token), None
    is_octal = len(token) > 1 and token[0] == "0" and token.isdigit()
    if kind == NUMBER and token[:2].lower() != "0x" and not is_octal:
        return sign * float(token.rstrip("fF")), None
    return wrong_type(info, token, "a decimal number is needed")


def _enum(info: FieldInfo, kind: int, token: str, negative: bool) -> Read:
    by_name, by_number = enum_numbers()[info.type]
    expected = f"one of {', '.join(by_name)} is needed"
    if kind == IDENTIFIER and not negative:
        if token in by_name:
            return token, None
        found = f"{info.name}: {token}"
        return token, Mistake(ProblemKind.UNKNOWN_ENUM_VALUE, found, expected, token, info.type)
    number = integer(token) if kind == NUMBER else None
    if number is None:
        return wrong_type(info, token, expected)
    number = -number if negative else number
    return by_number.get(number, number), None


def integer(token: str) -> int | None:
    """The number of a decimal, octal or hexadecimal token; None for a fraction, an exponent, a wrong digit."""
    try:
        if token[:2] in ("0x", "0X"):
            return int(token[2:], 16)
        if not token.isdigit() or len(token) > 400:
            return None if not token.isdigit() else 10**400
        return int(token, 8) if token[0] == "0" and len(token) > 1 else int(token)
    except ValueError:
        return None


def has_presence(info: FieldInfo, value: Any) -> bool:
    """Whether the server's parser sees this field as set: scalars only when they differ from their default."""
    if info.oneof is not None or info.kind == "message":
        return True
    return bool(value != default(info))


def default(info: FieldInfo) -> Any:
    """What a field has that is not given."""
    if info.kind == "enum":
        return enum_numbers()[info.type][1][0]
    if info.kind == "message":
        return Message()
    return {"string": "", "bool": False, "float": 0.0, "double": 0.0}.get(info.type, 0)
