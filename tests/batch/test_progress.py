from batch.progress import Progress, duration


def test_rate_and_time_left_follow_the_last_half_minute() -> None:
    now = [0.0]
    progress = Progress(100, 0, 0, 2, clock=lambda: now[0])
    for _ in range(40):
        progress.begin()
        now[0] += 0.5
        progress.end()
    assert progress.line() == "40 of 100 rows, 2.0 rows/s, 30 s left, in flight 0 of 2"


def test_rows_of_an_earlier_run_do_not_count_into_the_rate() -> None:
    now = [0.0]
    progress = Progress(100, 50, 3, 1, clock=lambda: now[0])
    progress.begin()
    now[0] += 2
    progress.end(is_bad=True)
    assert progress.line() == "51 of 100 rows, 4 bad, 0.5 rows/s, 1 min 38 s left, in flight 0 of 1"
    assert progress.summary().startswith("1 rows in 2.0 s (50 were done before), 0.5 rows/s, 4 bad")


def test_full_share_is_the_time_with_all_in_flight_while_there_was_more() -> None:
    now = [0.0]
    progress = Progress(10, 0, 0, 2, clock=lambda: now[0])
    progress.begin()
    now[0] += 1  # one of two in flight
    progress.begin()
    now[0] += 3
    progress.end()
    assert progress.full_share == 0.75
    for _ in range(8):
        progress.finish()
    now[0] += 100  # the last row cannot fill two places
    progress.end()
    assert progress.full_share == 0.75


def test_few_rows_say_nothing_about_the_limit() -> None:
    progress = Progress(2, 0, 0, 2)
    for move in (progress.begin, progress.begin, progress.end, progress.end):
        move()
    assert progress.full_share is None and progress.summary().endswith("0 bad")


def test_durations_are_said_as_people_say_them() -> None:
    assert [duration(one) for one in (0.25, 59, 185, 7800)] == ["0.2 s", "59 s", "3 min 05 s", "2 h 10 min"]
