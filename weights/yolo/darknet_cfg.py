"""Darknet's `.cfg` text as a list of sections.

In: text. Out: sections in file order; the first is `[net]`.
"""

from __future__ import annotations

from dataclasses import dataclass

from weights.errors import ExportError


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One `[kind]` block: where it stands, and its `key = value` lines."""

    kind: str
    line: int
    options: dict[str, str]

    def integer(self, key: str, default: int) -> int:
        """The value of `key` as a whole number."""
        return int(self._number(key, float(default)))

    def real(self, key: str, default: float) -> float:
        """The value of `key` as a number."""
        return self._number(key, default)

    def reals(self, key: str) -> tuple[float, ...]:
        """The comma-separated numbers of `key`; none when it is absent."""
        text = self.options.get(key, "")
        try:
            return tuple(float(part) for part in text.split(",") if part.strip())
        except ValueError:
            raise self.error(f"{key} is '{text}'; numbers with commas between are expected") from None

    def integers(self, key: str) -> tuple[int, ...]:
        """The comma-separated whole numbers of `key`; none when it is absent."""
        return tuple(int(value) for value in self.reals(key))

    def error(self, what: str) -> ExportError:
        """An `ExportError` that says where in the file the fault is."""
        return ExportError(f"cfg line {self.line}, [{self.kind}]: {what}.")

    def _number(self, key: str, default: float) -> float:
        text = self.options.get(key)
        try:
            return default if text is None else float(text)
        except ValueError:
            raise self.error(f"{key} is '{text}'; a number is expected") from None


def read_cfg(text: str) -> tuple[Section, ...]:
    """The sections of a `.cfg` file.

    Raises:
        ExportError: A line is neither a section, nor `key = value`, nor a comment; or the first section is not [net].
    """
    sections: list[Section] = []
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.split("#")[0].strip()
        if not line or line.startswith(";"):
            continue
        if line.startswith("[") and line.endswith("]"):
            sections.append(Section(kind=line[1:-1].strip(), line=number, options={}))
        elif "=" in line and sections:
            key, value = line.split("=", 1)
            sections[-1].options[key.strip()] = value.strip()
        else:
            raise ExportError(f"cfg line {number}: '{line}'. A [section] or key=value is expected there.")
    if not sections or sections[0].kind not in ("net", "network"):
        raise ExportError("cfg: it does not begin with [net]. A Darknet .cfg file is expected.")
    return tuple(sections)
