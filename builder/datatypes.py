"""Data types: Triton's config word, the word on the wire, and bytes per element, in one table.

In: a data type as a config spells it (`TYPE_FP32`) or without its prefix (`FP32`). Out: the row of the table.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class DataType:
    """One data type: its word in a config, its word on the wire, bytes per element (0 where it varies)."""

    config: str
    wire: str
    byte_size: int


DATA_TYPES = {
    word: DataType(config=word, wire=wire, byte_size=size)
    for word, wire, size in (
        ("TYPE_BOOL", "BOOL", 1),
        ("TYPE_UINT8", "UINT8", 1),
        ("TYPE_UINT16", "UINT16", 2),
        ("TYPE_UINT32", "UINT32", 4),
        ("TYPE_UINT64", "UINT64", 8),
        ("TYPE_INT8", "INT8", 1),
        ("TYPE_INT16", "INT16", 2),
        ("TYPE_INT32", "INT32", 4),
        ("TYPE_INT64", "INT64", 8),
        ("TYPE_FP16", "FP16", 2),
        ("TYPE_FP32", "FP32", 4),
        ("TYPE_FP64", "FP64", 8),
        ("TYPE_STRING", "BYTES", 0),
        ("TYPE_BF16", "BF16", 2),
    )
}


def data_type_of(word: str) -> str | None:
    """The config's word for `FP32`, `TYPE_FP32` or `fp32`; None for a word that names no type.

    `BYTES` is accepted as the wire's word for `TYPE_STRING`, the only type whose two words differ.
    """
    upper = word.upper()
    if upper == "BYTES":
        return "TYPE_STRING"
    full = upper if upper.startswith("TYPE_") else f"TYPE_{upper}"
    return full if full in DATA_TYPES else None
