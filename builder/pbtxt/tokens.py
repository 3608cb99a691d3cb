"""Protobuf's text format, cut into tokens.

In: a text. Out: three lists of one length (kind, text, offset), closed by an END token. Nothing is refused here: a
character that no token may start with becomes a SYMBOL, which the reader then does not expect.
"""

from __future__ import annotations

import re

END, IDENTIFIER, STRING, NUMBER, PLACEHOLDER, BROKEN_STRING, SYMBOL = range(7)

# Whitespace and comments are skipped possessively (`++`, `*+`), so that no text makes the search go back and forth.
_TOKEN = re.compile(
    r"""(?:[ \t\r\n\v\f]++|\#[^\n]*+)*+
    (?:([A-Za-z_][A-Za-z0-9_]*)
      |("(?:[^"\\\n]|\\[^\n])*+"|'(?:[^'\\\n]|\\[^\n])*+')
      |(0[xX][0-9a-fA-F]++|(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?[fF]?)
      |(\$\{[^}\n]*+\}?)
      |(["'](?:[^\\\n]|\\[^\n])*+)
      |(\S)
      |\Z)""",
    re.VERBOSE,
)
PLACEHOLDER_IN_TEXT = re.compile(r"\$\{[^}\n]*\}")


def tokenize(text: str) -> tuple[list[int], list[str], list[int]]:
    """Kind, text and offset of every token, and an END token behind the last."""
    kinds: list[int] = []
    texts: list[str] = []
    offsets: list[int] = []
    for match in _TOKEN.finditer(text, 1 if text.startswith("\ufeff") else 0):
        kind = match.lastindex
        if kind is None:  # the end, behind a last comment
            break
        kinds.append(kind)
        texts.append(match[kind])
        offsets.append(match.start(kind))
    kinds.append(END)
    texts.append("")
    offsets.append(len(text))
    return kinds, texts, offsets


_ESCAPES = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, "\\": 92, "'": 39, '"': 34, "?": 63}
_ESCAPE = re.compile(
    rb"\\(?:([abfnrtv\\'\"?])|([0-7]{1,3})|[xX]([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL
)


def string_value(token: str) -> tuple[str, str]:
    """The string that a STRING token means, and its first escape that means nothing (empty when all do)."""
    if "\\" not in token:
        return token[1:-1], ""
    broken = ""

    def replace(match: re.Match[bytes]) -> bytes:
        nonlocal broken
        simple, octal, hexadecimal, short, long, other = match.groups()
        if simple is not None:
            return bytes((_ESCAPES[simple.decode()],))
        if octal is not None:
            return bytes((int(octal, 8) & 0xFF,))
        if hexadecimal is not None:
            return bytes((int(hexadecimal, 16),))
        if other is not None or int(short or long, 16) > 0x10FFFF:
            broken = broken or match[0].decode("utf-8", "replace")
            return match[0]
        return chr(int(short or long, 16)).encode("utf-8", "surrogatepass")

    raw = _ESCAPE.sub(replace, token[1:-1].encode("utf-8", "surrogateescape"))
    return raw.decode("utf-8", "surrogateescape"), broken
