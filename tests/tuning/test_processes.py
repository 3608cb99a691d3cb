"""Processor time of processes."""

from __future__ import annotations

import subprocess
import sys

from starter.stubs import children
from tuning.processes import cpu_s, tree_cpu_s

BUSY = "import time; end = time.process_time() + 0.3\nwhile time.process_time() < end: pass\nprint(flush=True); input()"
PARENT = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BUSY!r}])"


def test_what_a_process_has_started_counts_as_its_own() -> None:
    command = [sys.executable, "-c", PARENT]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout and process.stdin
        process.stdout.readline()  # the child has worked and waits
        (child,) = children(process.pid)
        assert tree_cpu_s(process.pid) >= cpu_s(process.pid) + 0.3
        assert tree_cpu_s(child) == cpu_s(child)
        process.stdin.write(b"\n")
