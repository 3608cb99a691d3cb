from hypothesis import given
from hypothesis import strategies as st

from worker.offsets import Offsets


def test_commit_stops_below_the_lowest_message_in_work() -> None:
    offsets = Offsets()
    for offset in (5, 6, 7):
        offsets.take(offset)
    offsets.finish(6)
    assert (offsets.to_commit(), offsets.lowest) == (5, 5)
    offsets.committed(5)
    assert offsets.to_commit() is None, "nothing new"
    offsets.finish(5)
    assert offsets.to_commit() == 7
    offsets.finish(7)
    assert (offsets.to_commit(), offsets.lowest) == (8, None)


@given(st.permutations(range(8)), st.integers(1, 8))
def test_whatever_the_order_no_unfinished_message_is_ever_committed(order: list[int], until: int) -> None:
    offsets = Offsets()
    for offset in range(8):
        offsets.take(offset)
    finished: set[int] = set()
    for offset in order[:until]:
        offsets.finish(offset)
        finished.add(offset)
        due = offsets.to_commit()
        if due is not None:
            offsets.committed(due)
            assert set(range(due)) <= finished and due not in finished
