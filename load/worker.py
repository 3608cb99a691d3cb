"""One process of a crew: reads its share from stdin, sends it, writes what became of it to stdout."""

from __future__ import annotations

import pickle
import sys
from typing import Any

from load.clock import run_finely


def main() -> None:
    """Run one share."""
    out = sys.stdout.buffer
    sys.stdout = sys.stderr  # nothing that prints may come between the pickles

    def say(value: Any) -> None:
        pickle.dump(value, out, protocol=pickle.HIGHEST_PROTOCOL)
        out.flush()

    share, connectable = pickle.load(sys.stdin.buffer)
    from load.driving import send_share  # what takes time is loaded before the others are told to begin

    say("ready")
    start = pickle.load(sys.stdin.buffer)
    say(run_finely(send_share(share, connectable, start, say)))


if __name__ == "__main__":
    main()
