"""The language model without a server against the same on one: are the answers equal, and how fast is each?

Usage: python benchmarks/offline.py [ROWS]. Starts an embedded server, asks it, ends it, then runs the model in this
process. Prints one line of JSON.
"""

import json
import sys
import tempfile
import time
from pathlib import Path

from batch.job import Job, do_here, run_job
from embedded import EmbeddedServer

REPOSITORY = Path(__file__).parents[1] / "model_repository"
WORDS = ("dog", "cat", "house", "tree", "river", "friend", "ball", "garden")


def main(rows: int = 32) -> None:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "in.jsonl")
        asked = [{"prompt": f"The {WORDS[number % len(WORDS)]} {number}", "max_tokens": 32} for number in range(rows)]
        source.write_text("".join(json.dumps({**one, "temperature": 0, "seed": 1}) + "\n" for one in asked))
        with EmbeddedServer(REPOSITORY, load=["llm"], cache=Path(".cache")) as server:
            by_server = done(
                Job(source=source, out=Path(folder, "s.jsonl"), pipeline="llm", url=f"grpc://{server.grpc}")
            )
        alone = done(Job(source=source, out=Path(folder, "o.jsonl"), pipeline="llm", offline=str(REPOSITORY)))
    equal = sum(one == other for one, other in zip(by_server[0], alone[0], strict=True))
    print(json.dumps({"rows": rows, "equal": equal, "server_s": by_server[1], "offline_s_with_start": alone[1]}))


def done(job: Job) -> tuple[list[str], float]:
    """The rows, and the seconds that they took."""
    began = time.monotonic()
    run_job(job, do_here(lambda line: None))
    return job.out.read_text().splitlines(), round(time.monotonic() - began, 1)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
