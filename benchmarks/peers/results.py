"""What was measured, round by round, in results.json: every run adds its rounds, and tables take medians over all.

One round is one contender under one load; `callers` and `contender` say which. Times in seconds, memory in bytes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.peers.driver import Tally

FILE = Path(__file__).parent / "results.json"
SHARES = (50, 95, 99)
MOST_OTHERS = 0.5
Round = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Medians of one contender under one load; what was never measured is None.

    Attributes:
        rates: answers a second, turn by turn.
        firsts_s: until the first word, turn by turn.
    """

    contender: str
    callers: int
    rounds: int
    answers_per_s: float
    p50_s: float | None
    p95_s: float | None
    p99_s: float | None
    first_p50_s: float | None
    first_p95_s: float | None
    cpu_s_per_answer: float | None
    client_cpu_s_per_answer: float | None
    memory_bytes: int
    others_share: float
    errors: int
    asked: int
    rates: tuple[float, ...]
    firsts_s: tuple[float | None, ...]

    def share_of(self, other: Row) -> float | None:
        """Its answers for each of the other's: of each turn, then the median, since the machine's pace changes."""
        shares = [mine / its for mine, its in zip(self.rates, other.rates, strict=False) if its]
        return median(shares) if shares else None

    def later_than(self, other: Row) -> float | None:
        """Seconds by which its first word comes after the other's, likewise."""
        both = zip(self.firsts_s, other.firsts_s, strict=False)
        later = [mine - its for mine, its in both if mine is not None and its is not None]
        return median(later) if later else None


def round_of(
    contender: str,
    callers: int,
    tally: Tally,
    *,
    cpu_s: float,
    client_cpu_s: float,
    memory_bytes: int,
    others_share: float = 0.0,
) -> Round:
    """One round, summed up.

    Args:
        others_share: of the machine's CPU that neither the contender nor the load used: how quiet it was.
    """
    answered = len(tally.latency_s)
    latencies = {f"p{share}_s": quantile(tally.latency_s, share) for share in SHARES}
    firsts = {f"first_p{share}_s": quantile(tally.first_s, share) for share in SHARES[:2]}
    return {
        "contender": contender,
        "callers": callers,
        "answered": answered,
        "wrong": tally.wrong,
        "failed": tally.failed,
        "seconds": round(tally.seconds, 4),
        **latencies,
        **firsts,
        "cpu_s": round(cpu_s, 3),
        "client_cpu_s": round(client_cpu_s, 3),
        "memory_bytes": memory_bytes,
        "others_share": round(others_share, 3),
        **({"problem": tally.problem} if tally.problem else {}),
    }


def quantile(values: Sequence[float], share: int) -> float | None:
    """The smallest value that `share` percent do not exceed; None of none."""
    ranked = sorted(values)
    return round(ranked[max(0, -(-len(ranked) * share // 100) - 1)], 5) if ranked else None


def add(scenario: str, rounds: Sequence[Round], machine: dict[str, Any], *, anew: bool, file: Path = FILE) -> None:
    """Add rounds to the file; `anew` forgets the scenario's earlier ones."""
    known = read(file)
    earlier = [] if anew else known["scenarios"].get(scenario, [])
    known["machine"] = machine
    known["scenarios"][scenario] = [*earlier, *rounds]
    lines = ",\n".join(
        f"  {json.dumps(name)}: [\n" + ",\n".join(f"   {json.dumps(one)}" for one in found) + "\n  ]"
        for name, found in known["scenarios"].items()
    )
    text = f'{{\n "machine": {json.dumps(known["machine"])},\n "scenarios": {{\n{lines}\n }}\n}}\n'
    file.write_text(text, encoding="utf-8")


def read(file: Path = FILE) -> dict[str, Any]:
    """All that is known."""
    if not file.exists():
        return {"machine": {}, "scenarios": {}}
    known: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return known


def rows_of(rounds: Sequence[Round]) -> list[Row]:
    """A row for each contender under each load, in the order in which they were first measured.

    Turns in which others had more than half of the machine are left out where there is a quieter one.
    """
    rows: list[Row] = []
    for callers in dict.fromkeys(one["callers"] for one in rounds):
        under_load = [one for one in rounds if one["callers"] == callers]
        names = dict.fromkeys(one["contender"] for one in under_load)
        rows += map(_row, _quiet([[one for one in under_load if one["contender"] == name] for name in names]))
    return rows


def _quiet(rounds: Sequence[Sequence[Round]]) -> Sequence[Sequence[Round]]:
    """Those of each contender without the turns in which one of them was disturbed."""
    disturbed = {turn for one in rounds for turn, each in enumerate(one) if each["others_share"] > MOST_OTHERS}
    quiet = [[each for turn, each in enumerate(one) if turn not in disturbed] for one in rounds]
    return quiet if all(quiet) else rounds


def _row(rounds: Sequence[Round]) -> Row:
    def middle(name: str) -> float | None:
        found = [one[name] for one in rounds if one[name] is not None]
        return median(found) if found else None

    def each(name: str) -> float | None:
        found = [one[name] / one["answered"] for one in rounds if one["answered"]]
        return median(found) if found else None

    errors = sum(one["wrong"] + one["failed"] for one in rounds)
    return Row(
        contender=rounds[0]["contender"],
        callers=rounds[0]["callers"],
        rounds=len(rounds),
        answers_per_s=median(one["answered"] / one["seconds"] for one in rounds),
        **{f"{name}_s": middle(f"{name}_s") for name in ("p50", "p95", "p99", "first_p50", "first_p95")},  # type: ignore[arg-type]
        cpu_s_per_answer=each("cpu_s"),
        client_cpu_s_per_answer=each("client_cpu_s"),
        memory_bytes=max(one["memory_bytes"] for one in rounds),
        others_share=max(one["others_share"] for one in rounds),
        errors=errors,
        asked=errors + sum(one["answered"] for one in rounds),
        rates=tuple(one["answered"] / one["seconds"] for one in rounds),
        firsts_s=tuple(one["first_p50_s"] for one in rounds),
    )
