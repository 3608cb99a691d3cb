"""A batch on a local Ray cluster whose two workers each own a server. Prints what came, as JSON.

Usage: batch_on_ray.py FOLDER, which holds repository/.
"""

import json
import sys
from pathlib import Path

from batch.job import Job, run_job
from batch.on_ray import do_on_ray


def main(folder: Path) -> None:
    source = folder / "in.jsonl"
    rows = [{"id": f"n{number}", "prompt": "x", "words": 1} for number in range(200)]
    rows[7] = {"id": "n7"}
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    job = Job(source=source, out=folder / "out.jsonl", pipeline="llm", in_flight=8)
    progress = run_job(job, do_on_ray("local", 2, folder / "repository", lambda line: None))
    print(json.dumps({"done": progress.done, "bad": progress.bad}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
