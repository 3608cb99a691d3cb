"""Which folders the server takes for versions, and which of them it loads.

Seen on 2.51: a name that begins with digits is taken for that number (`1a` is 1, then looked for as `1`), one of
several characters that begins with 0 is passed over, a number beyond 64 bits ends the whole server.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

_NUMBER = re.compile(r"[ \t\n\v\f\r]*([+-]?[0-9]+)")
_LARGEST = 2**63 - 1


def version_number(name: str) -> int | None:
    """The version that the server takes a folder of this name for; None where it passes over it.

    Raises:
        OverflowError: the number does not fit into 64 bits, which ends the server.
    """
    if len(name) > 1 and name.startswith("0"):
        return None
    found = _NUMBER.match(name)
    if found is None:
        return None
    number = int(found[1])
    if not -_LARGEST - 1 <= number <= _LARGEST:
        raise OverflowError(name)
    return number


def loaded_versions(policy: Mapping[str, Any] | None, there: Sequence[int]) -> tuple[int, ...]:
    """The versions among `there` that a version policy admits: the latest without one, all for an empty one."""
    known = tuple(sorted(set(there)))
    if policy is None:
        return known[-1:]
    if "specific" in policy:
        return tuple(version for version in known if version in policy["specific"].get("versions", ()))
    if "latest" in policy:
        count = policy["latest"].get("num_versions", 0)
        return known[-count:] if count else ()
    return known
