"""When something is looked at that gave notices."""

from servers.filesystem.watch.pacing import MAX_NOTICED, Pace, WatchedTarget

PACE = Pace(quiet=1, longest=5)


def watched(pace=PACE):
    return WatchedTarget(target=None, callback=None, pace=pace)


def told(one, notices, until):
    """The times at which it is looked at, when notices come at these times."""
    times = []
    for now in range(100, until):
        if now in notices:
            one.notice(now)
        if one.due is not None and one.due <= now:
            one.begin_check(now)
            times.append(now)
    return times


def test_the_first_notice_is_acted_upon_at_once_and_the_next_waits_for_a_quiet_moment():
    assert told(watched(), {100}, 110) == [100]
    assert told(watched(), {100, 102}, 110) == [100, 103]
    assert told(watched(), {100, 120}, 130) == [100, 120]
    # Without a leading edge many notices are one look.
    assert told(watched(PACE._replace(leading=False)), {100, 101, 102}, 110) == [103]


def test_w5_endless_notices_lead_to_looks_at_a_bounded_rate_the_last_one_included():
    assert told(watched(), range(100, 120), 130) == [100, 105, 110, 115, 120]


def test_w6_the_paths_to_look_at_are_bounded():
    one = watched()
    for i in range(MAX_NOTICED):
        one.notice(1, str(i))
    assert len(one.noticed) == MAX_NOTICED
    one.notice(1, "one more")
    assert one.begin_check(2) is None


def test_a_notice_about_the_way_concerns_all_of_it():
    one = watched()
    one.notice(1, "a")
    one.notice(1)
    one.notice(1, "b")
    assert one.begin_check(2) is None


def test_after_a_look_only_what_came_since_is_looked_at():
    one = watched()
    one.notice(1, "a")
    assert one.begin_check(2) == {"a"}
    one.notice(3, "b")
    assert one.begin_check(4) == {"b"}
