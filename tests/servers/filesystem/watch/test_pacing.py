"""The times of checks after notices."""

from servers.filesystem.watch.pacing import MAX_NOTICED, Pace, WatchedTarget

PACE = Pace(quiet=1, longest=5)


def watched(pace=PACE):
    return WatchedTarget(target=None, callback=None, pace=pace)


def check_times(target, notices, until):
    """The times of the checks, given the times of the notices."""
    times = []
    for now in range(100, until):
        if now in notices:
            target.notice(now)
        if target.due_at is not None and target.due_at <= now:
            target.begin_check(now)
            times.append(now)
    return times


def test_the_first_notice_is_checked_at_once_and_the_next_after_a_quiet_time():
    assert check_times(watched(), {100}, 110) == [100]
    assert check_times(watched(), {100, 102}, 110) == [100, 103]
    assert check_times(watched(), {100, 120}, 130) == [100, 120]
    # Without a leading edge many notices cause one check.
    assert check_times(watched(PACE._replace(leading=False)), {100, 101, 102}, 110) == [103]


def test_continuous_notices_are_checked_at_a_bounded_rate():
    assert check_times(watched(), range(100, 120), 130) == [100, 105, 110, 115, 120]


def test_noticed_paths_over_the_limit_become_a_full_check():
    target = watched()
    for i in range(MAX_NOTICED):
        target.notice(1, str(i))
    assert len(target.noticed) == MAX_NOTICED
    target.notice(1, "one more")
    assert target.begin_check(2) is None


def test_a_notice_without_a_path_causes_a_full_check():
    target = watched()
    target.notice(1, "a")
    target.notice(1)
    target.notice(1, "b")
    assert target.begin_check(2) is None


def test_a_check_covers_only_paths_noticed_since_the_last():
    target = watched()
    target.notice(1, "a")
    assert target.begin_check(2) == {"a"}
    target.notice(3, "b")
    assert target.begin_check(4) == {"b"}
