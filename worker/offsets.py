"""Which offsets may be committed: everything below the lowest message that is still being worked on. Pure."""


class Offsets:
    """The messages of one partition between being taken and being finished, in any order."""

    def __init__(self) -> None:
        self._open: set[int] = set()
        self._next = -1
        self._committed = -1

    def take(self, offset: int) -> None:
        """Work on a message begins."""
        self._open.add(offset)
        self._next = max(self._next, offset + 1)

    def finish(self, offset: int) -> None:
        """Its result, or its place among the dead letters, is on the broker."""
        self._open.discard(offset)

    @property
    def lowest(self) -> int | None:
        """The lowest message that is being worked on."""
        return min(self._open) if self._open else None

    def to_commit(self) -> int | None:
        """The offset to commit; None when that would change nothing."""
        offset = min(self._open) if self._open else self._next
        return offset if offset > self._committed and offset >= 0 else None

    def committed(self, offset: int) -> None:
        """The broker has it."""
        self._committed = max(self._committed, offset)
