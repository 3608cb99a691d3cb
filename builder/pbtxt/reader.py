"""A `config.pbtxt` read as tolerantly as possible, and judged as strictly as the server's own parser.

In: text or bytes. Out: a `Document`: nested dicts by Triton's names, every problem with its place. The field table
(`builder.fields`) is the grammar, so that a config newer than our own protobuf package is read too.
Sources: protobuf's text format specification; the rules on fields given twice and on members of a oneof are those of
its C++ parser, which the server runs with its defaults, and were tried on a 2.51.
"""

from __future__ import annotations

from typing import Any

from builder.fields import ROOT, FieldInfo, messages
from builder.pbtxt.cursor import Cursor, Stop
from builder.pbtxt.scalars import BOOLS, default, has_presence, integer, scalar, wrong_type
from builder.pbtxt.tokens import (
    BROKEN_STRING,
    END,
    IDENTIFIER,
    NUMBER,
    PLACEHOLDER,
    PLACEHOLDER_IN_TEXT,
    STRING,
    SYMBOL,
    string_value,
)
from builder.pbtxt.values import Document, Message, Mistyped, Problem, ProblemKind

MAX_BYTES = 4 * 1024 * 1024
MAX_DEPTH = 64

_CLOSERS = {"{": "}", "<": ">"}


def read(data: str | bytes, message: str = ROOT) -> Document:
    """The document that `data` holds. Never raises: what cannot be understood is a problem of the document."""
    if len(data) > MAX_BYTES:
        found = f"{len(data)} bytes or characters; not read"
        problem = Problem(
            kind=ProblemKind.TOO_LARGE,
            offset=0,
            path="",
            name="",
            message=message,
            found=found,
            expected=f"a config has at most {MAX_BYTES} of them",
        )
        return Document(text="", config=Message(), problems=(problem,))
    text = data if isinstance(data, str) else data.decode("utf-8", "surrogateescape")
    reader = _Reader(text)
    config = reader.whole(message)
    return Document(text=text, config=config, problems=tuple(sorted(reader.problems, key=lambda one: one.offset)))


class _Reader(Cursor):
    """One pass over the tokens of one text."""

    # Messages

    def whole(self, message: str) -> Message:
        """The whole text as one message."""
        self._check_text()
        result = Message(0)
        while self.kinds[self.index] != END:
            self._fields(result, message, "")
            if self.kinds[self.index] != END:  # a closing bracket too many
                self.unexpected("a field's name is needed here")
                self.index += 1
        return result

    def _check_text(self) -> None:
        if self.text.startswith("\ufeff"):
            self.problem(ProblemKind.ENCODING, 0, "a byte order mark", "the text begins with its first field")
        try:
            self.text.encode("utf-8")
        except UnicodeEncodeError as error:
            self.problem(ProblemKind.NOT_UTF8, error.start, "a byte that is not UTF-8", "a config is UTF-8 text")
        control = next((match for match in ("\0",) if match in self.text), None)
        if control is not None:
            offset = self.text.index(control)
            self.problem(ProblemKind.ENCODING, offset, "a NUL character", "a config is text without control characters")

    def _fields(self, result: Message, message: str, closer: str) -> None:
        """Every field up to the closing bracket, which is left for the caller."""
        table = messages().get(message)
        kinds, texts = self.kinds, self.texts
        while True:
            kind = kinds[self.index]
            if kind == IDENTIFIER:
                info = table.get(texts[self.index]) if table is not None else None
                try:
                    if info is not None:
                        self._field(result, info)
                    else:
                        self._unknown_field(result, message, known=table is not None)
                except Stop:
                    self._skip_to_next_field(closer)
                if texts[self.index] in (",", ";") and kinds[self.index] == SYMBOL:
                    self.index += 1
            elif kind == END or (kind == SYMBOL and texts[self.index] in ("}", ">")):
                return
            else:
                self.unexpected("a field's name is needed here")
                self._skip_to_next_field(closer)

    def _field(self, result: Message, info: FieldInfo) -> None:
        name, offset = info.name, self.offsets[self.index]
        self.index += 1
        colon = self.take(":")
        if not colon and info.kind != "message" and not info.map_key:
            self.unexpected(f"a colon is needed behind {name}")
            raise Stop
        if not info.repeated and not info.map_key:
            value = self._value(info)
            self._check_once(result, info, offset)
            result[name] = value
            result.at[name] = offset
            return
        if name not in result:
            result[name] = Message(offset) if info.map_key else []
            result.at[name] = offset if info.map_key or info.kind == "message" else []
        if self.take("["):
            while not self.take("]"):
                self._add(result, info)
                if self.take("]"):
                    break
                if not self.take(","):
                    self.unexpected("a comma or `]` is needed here")
                    raise Stop
                if self.at("]"):
                    self.unexpected("a value is needed behind the comma")
            return
        self._add(result, info)

    def _add(self, result: Message, info: FieldInfo) -> None:
        """One more element of a repeated field, or one more entry of a map."""
        offset = self.offsets[self.index]
        if info.map_key:
            self._entry(result[info.name], info, offset)
            return
        result[info.name].append(self._value(info))
        places = result.at[info.name]
        if isinstance(places, list):
            places.append(offset)

    def _entry(self, entries: Message, info: FieldInfo, offset: int) -> None:
        entry = self._message(f"{info.message}.{_camel(info.name)}Entry", info.name)
        key = entry.get("key", "" if info.map_key == "string" else 0)
        value = entry.get("value")
        if value is None:
            value = Message(offset) if info.kind == "message" else default(info)
        if key in entries:
            self.problem(
                ProblemKind.DUPLICATE_KEY,
                offset,
                f"the key {key!r} of {info.name} a second time",
                "a key stands once; the server keeps the last entry and says nothing",
                name=str(key),
            )
        entries[key] = value
        entries.at[key] = offset

    def _message(self, message: str, name: str) -> Message:
        opener, offset = self.texts[self.index], self.offsets[self.index]
        if self.kinds[self.index] != SYMBOL or opener not in _CLOSERS:
            self.unexpected(f"`{{` is needed behind {name}")
            raise Stop
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.problem(
                ProblemKind.TOO_DEEP, offset, f"more than {MAX_DEPTH} messages in each other", "no config nests so"
            )
            self.index = len(self.kinds) - 1
            self.depth -= 1
            return Message(offset)
        self.index += 1
        self.path.append(name)
        result = Message(offset)
        closer = _CLOSERS[opener]
        self._fields(result, message, closer)
        self.path.pop()
        self.depth -= 1
        if not self.take(closer):
            self.unexpected(f"`{closer}` is needed to close {name}")
            if self.kinds[self.index] == SYMBOL and self.texts[self.index] in ("}", ">"):
                self.index += 1
        return result

    def _check_once(self, result: Message, info: FieldInfo, offset: int) -> None:
        """Refuse what the server's parser refuses: a field that has a value already, a second member of a oneof."""
        if info.name in result and has_presence(info, result[info.name]):
            self.problem(
                ProblemKind.GIVEN_TWICE, offset, f"{info.name} a second time", "this field stands once", name=info.name
            )
        if info.oneof is None:
            return
        for other in result:
            sibling = messages()[info.message].get(other)
            if sibling is not None and sibling.oneof == info.oneof and other != info.name:
                self.problem(
                    ProblemKind.ONE_OF,
                    offset,
                    f"{info.name} beside {other}",
                    f"only one of them may stand here ({info.oneof})",
                    name=info.name,
                    message=info.message,
                )

    # Values

    def _value(self, info: FieldInfo) -> Any:
        if info.kind == "message":
            return self._message(info.type, info.name)
        kind = self.kinds[self.index]
        if kind in (PLACEHOLDER, BROKEN_STRING, END):
            self.unexpected(f"a value is needed for {info.name}")
            if kind == PLACEHOLDER:
                self.index += 1
                return default(info)
            raise Stop
        if info.type == "string":
            return self._string(info)
        negative = self.take("-")
        kind, token, offset = self.kinds[self.index], self.texts[self.index], self.offsets[self.index]
        if kind not in (NUMBER, IDENTIFIER, STRING):
            self.unexpected(f"a value is needed for {info.name}")
            raise Stop
        self.index += 1
        if kind == NUMBER and self.kinds[self.index] == IDENTIFIER and self.offsets[self.index] == offset + len(token):
            self.problem(ProblemKind.SYNTAX, offset, f"`{token}{self.texts[self.index]}`", "a number ends with a space")
            self.index += 1
        value, mistake = scalar(info, kind, token, negative)
        if mistake is not None:
            self.mistake(offset, mistake)
        return value

    def _string(self, info: FieldInfo) -> str | Mistyped:
        if self.kinds[self.index] != STRING:
            token, offset = self.texts[self.index], self.offsets[self.index]
            wrong, mistake = wrong_type(info, token, "a text in quotes is needed")
            self.mistake(offset, mistake)
            if self.kinds[self.index] == SYMBOL:
                raise Stop
            self.index += 1
            return wrong
        parts = []
        while self.kinds[self.index] == STRING:
            token, offset = self.texts[self.index], self.offsets[self.index]
            value, broken = string_value(token)
            if broken:
                self.problem(
                    ProblemKind.SYNTAX, offset, f"the escape {broken}", "an escape of protobuf's text format is needed"
                )
            for match in PLACEHOLDER_IN_TEXT.finditer(token):
                self.placeholder(offset + match.start(), match[0], in_string=True)
            parts.append(value)
            self.index += 1
        if self.kinds[self.index] == BROKEN_STRING:
            self.unexpected("")
            raise Stop
        return parts[0] if len(parts) == 1 else _joined(parts)

    # What is not in the table, and going on after a mistake

    def _unknown_field(self, result: Message, message: str, *, known: bool) -> None:
        """Keep a field that no release examined knows: reported, its value kept as far as its form tells."""
        name, offset = self.texts[self.index], self.offsets[self.index]
        if known:
            self.problem(
                ProblemKind.UNKNOWN_FIELD, offset, f"the field {name}", f"a field of {message} is needed", name, message
            )
        self.index += 1
        if not self.take(":") and not self.at("{") and not self.at("<"):
            self.unexpected(f"a colon is needed behind {name}")
            raise Stop
        value = self._unknown_value(name)
        if name in result:
            previous = result[name]
            result[name] = [*previous, value] if isinstance(previous, list) else [previous, value]
            return
        result[name] = value
        result.at[name] = offset

    def _unknown_value(self, name: str) -> Any:
        if self.at("{") or self.at("<"):
            return self._message("", name)
        if self.take("["):
            values = []
            while not self.take("]"):
                values.append(self._unknown_value(name))
                if not self.take(",") and not self.at("]"):
                    self.unexpected("a comma or `]` is needed here")
                    raise Stop
            return values
        negative = self.take("-")
        kind, token = self.kinds[self.index], self.texts[self.index]
        if kind == STRING:
            return self._string(
                FieldInfo(
                    message="",
                    name=name,
                    type="string",
                    kind="scalar",
                    repeated=False,
                    map_key=None,
                    oneof=None,
                    since=None,
                )
            )
        if kind not in (IDENTIFIER, NUMBER):
            self.unexpected(f"a value is needed for {name}")
            raise Stop
        self.index += 1
        if kind == IDENTIFIER:
            return BOOLS.get(token, token)
        number: float | None = integer(token)
        if number is None:
            number = float(token.rstrip("fF")) if token[:2].lower() != "0x" else 0
        return -number if negative else number

    def _skip_to_next_field(self, closer: str) -> None:
        """Go on where a field begins on the same level, or where the message closes."""
        kinds, texts = self.kinds, self.texts
        level = 0
        while kinds[self.index] != END:
            token = texts[self.index]
            if kinds[self.index] == SYMBOL:
                if token in ("{", "<", "["):
                    level += 1
                elif token in ("}", ">", "]"):
                    if level == 0 and token != "]":
                        return
                    level = max(0, level - 1)
            elif kinds[self.index] == IDENTIFIER and level == 0 and texts[self.index + 1] in (":", "{", "<"):
                return
            self.index += 1


def _joined(parts: list[str]) -> str:
    """Adjacent strings as one; a character may be cut between two of them."""
    return b"".join(part.encode("utf-8", "surrogateescape") for part in parts).decode("utf-8", "surrogateescape")


def _camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))
