"""Each finished row, as soon as it is finished, in one file beside the output: what is written there is never redone.

The first line says which batch it is; each further line is one row, written by one write(). After kill -9 the file
ends in a whole line or in a part of one, which is cut off. After a power cut the last second may be missing: rows are
on the disk within SYNC_S.
"""

import fcntl
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from batch.errors import OutputError
from batch.rows import Row

SYNC_S = 1.0


class Journal:
    """The rows that are done, on disk.

    Attributes:
        done: where each finished row's line begins, by the row's key.
        bad: how many of them could not be done.
    """

    def __init__(self, path: Path, about: Mapping[str, Any]) -> None:
        self.path = path
        self.done: dict[str, int] = {}
        self.bad = 0
        self._about = json.dumps({"batch": about}, sort_keys=True) + "\n"
        self._file = -1
        self._end = 0
        self._synced = time.monotonic()

    def __enter__(self) -> Self:
        """Opens it, takes it for this process alone, and reads what is there.

        Raises:
            OutputError: another process has it, or it belongs to another batch.
        """
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._read()
        except BlockingIOError as error:
            os.close(self._file)
            raise OutputError(
                f"{self.path}: another process writes to it. Wait for it, or give another OUT."
            ) from error
        except BaseException:
            os.close(self._file)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.fsync(self._file)
        os.close(self._file)

    def add(self, row: Row, result: Mapping[str, Any]) -> None:
        """Keeps the answer to a row."""
        self._write(row, {"id": row.id, "number": row.number, "result": result})

    def add_bad(self, row: Row, reason: str) -> None:
        """Keeps why a row could not be done."""
        self._write(row, {"id": row.id, "number": row.number, "reason": reason})
        self.bad += 1

    def records(self, keys: Iterable[str]) -> Iterator[dict[str, Any]]:
        """What was kept about these rows, in this order."""
        with self.path.open("rb") as file:
            for key in keys:
                file.seek(self.done[key])
                yield json.loads(file.readline())

    def _write(self, row: Row, record: Mapping[str, Any]) -> None:
        line = json.dumps({"key": row.key, **record}, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"
        self._put(line)
        self.done[row.key] = self._end - len(line)
        if time.monotonic() - self._synced > SYNC_S:
            os.fdatasync(self._file)
            self._synced = time.monotonic()

    def _put(self, line: bytes) -> None:
        view = memoryview(line)
        while view:
            view = view[os.write(self._file, view) :]
        self._end += len(line)

    def _read(self) -> None:
        with self.path.open("rb") as file:
            head = file.readline()
            if not head.endswith(b"\n"):
                os.ftruncate(self._file, 0)
                self._put(self._about.encode())
                return
            if head.decode() != self._about:
                raise OutputError(
                    f"{self.path}: the beginning of another batch: {head.decode().strip()}; this one is "
                    f"{self._about.strip()}. Remove the file to begin anew, or give another OUT."
                )
            self._end = len(head)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                record = json.loads(line)
                self.done[record["key"]] = self._end
                self.bad += "reason" in record
                self._end += len(line)
        os.ftruncate(self._file, self._end)
        os.lseek(self._file, self._end, os.SEEK_SET)
