"""The times of checks after notices."""

from servers.filesystem.watch.pacing import MAX_NOTICED, Pace, WatchedTarget

PACE = Pace(quiet=1, longest=5)


def watched(pace=PACE):
    return WatchedTarget(target=None, callback=None, pace=pace)


def told(one, notices, until):
    """The times of the checks, given the times of the notices."""
    times = []
    for now in range(100, until):
        if now in notices:
            one.notice(now)
        if one.due is not None and one.due <= now:
            one.begin_check(now)
            times.append(now)
    return times


def test_the_first_notice_is_checked_at_once_and_the_next_after_a_quiet_time():
    assert told(watched(), {100}, 110) == [100]
    assert told(watched(), {100, 102}, 110) == [100, 103]
    assert told(watched(), {100, 120}, 130) == [100, 120]
    # Without a leading edge many notices cause one check.
    assert told(watched(PACE._replace(leading=False)), {100, 101, 102}, 110) == [103]


def test_continuous_notices_are_checked_at_a_bounded_rate():
    assert told(watched(), range(100, 120), 130) == [100, 105, 110, 115, 120]


def test_noticed_paths_over_the_limit_become_a_full_check():
    one = watched()
    for i in range(MAX_NOTICED):
        one.notice(1, str(i))
    assert len(one.noticed) == MAX_NOTICED
    one.notice(1, "one more")
    assert one.begin_check(2) is None


def test_a_notice_without_a_path_causes_a_full_check():
    one = watched()
    one.notice(1, "a")
    one.notice(1)
    one.notice(1, "b")
    assert one.begin_check(2) is None


def test_a_check_covers_only_paths_noticed_since_the_last():
    one = watched()
    one.notice(1, "a")
    assert one.begin_check(2) == {"a"}
    one.notice(3, "b")
    assert one.begin_check(4) == {"b"}
