"""API keys: kept as hashes, compared in constant time."""

import hashlib
import hmac
from collections.abc import Iterable, Sequence

SHORTEST = 16


def hash_key(key: str) -> bytes:
    """What is kept of a key, so that no log, dump or process list can show it."""
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()


def read_keys(text: str) -> tuple[str, ...]:
    """The keys in a file: one a line; empty lines and lines that begin with # don't count.

    Raises:
        ValueError: no key, or one that is too short to be safe. The message doesn't show it.
    """
    lines = [line.strip() for line in text.splitlines()]
    keys = tuple(line for line in lines if line and not line.startswith("#"))
    short = [number for number, key in enumerate(keys, start=1) if len(key) < SHORTEST]
    if short:
        raise ValueError(f"key {short[0]} has fewer than {SHORTEST} characters")
    if not keys:
        raise ValueError("no key in it; one a line is needed")
    return keys


def bearer_of(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """The key that a request carries, "" if none."""
    for name, value in headers:
        if name == b"authorization" and value[:7].lower() == b"bearer ":
            return value[7:].strip().decode("utf-8", "surrogateescape")
    return ""


def is_known(key: str, known: Sequence[bytes]) -> bool:
    """Whether the key is one of those that may ask. Looks at all of them, so that time tells nothing."""
    digest = hash_key(key)
    found = False
    for one in known:
        found |= hmac.compare_digest(digest, one)
    return found
