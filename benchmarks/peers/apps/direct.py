"""No server at all: the same functions called in the process of the load itself. What every server is measured against.

    python -m benchmarks.peers.apps.direct SERVICE

Reads one JSON object per line, `{"callers": 8, "seconds": 4.0}`, and answers each with the tally of that load.
"""

import asyncio
import json
import sys

from benchmarks.peers.cases import Case, cases_of
from benchmarks.peers.driver import Answer, Call, closed_loop
from benchmarks.peers.work.services import SERVICES


def call_of(name: str) -> Call:
    """Calls the work of a service in a thread: as many at once as there are callers."""
    service = SERVICES[name]
    work = service.load()

    async def call(case: Case) -> Answer:
        answers = await asyncio.to_thread(work.batch, [service.read(case.body)])
        return Answer(value=answers[0])

    return call


async def obey(name: str, call: Call) -> None:
    """Answers commands until standard input ends."""
    cases = cases_of(name)
    print(json.dumps({"ready": True}), flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        wanted = json.loads(line)
        tally = await closed_loop(call, cases, callers=wanted["callers"], seconds=wanted["seconds"])
        print(json.dumps(tally.as_json()), flush=True)


if __name__ == "__main__":
    asyncio.run(obey(sys.argv[1], call_of(sys.argv[1])))
