"""`Pauses`: at once the first time, and then ever later."""

from shared.client.restart import LONGEST_SECONDS, STEADY_SECONDS, Pauses


def starts_at(pauses: Pauses, *lives: float) -> list[float]:
    """How long each start waits that follows a server which lived so long."""
    now, waits = 1_000.0, list[float]()
    for life in lives:
        waits.append(pauses.left(now + life))
        now += life + waits[-1]
        pauses.started(now)
    return waits


def test_a_server_that_goes_on_crashing_is_started_ever_more_rarely() -> None:
    assert starts_at(Pauses(), *[0.0] * 9) == [0, 0.5, 1, 2, 4, 8, 16, 30, 30]


def test_the_life_of_a_server_counts_for_its_pause() -> None:
    assert starts_at(Pauses(), 0, 0.25, 5, 0) == [0, 0.25, 0, 2]


def test_a_long_life_is_forgiven() -> None:
    assert starts_at(Pauses(), *[0.0] * 9, STEADY_SECONDS, 0)[-3:] == [LONGEST_SECONDS, 0, 0.5]


def test_who_gives_up_waiting_makes_no_pause_longer() -> None:
    pauses = Pauses()
    starts_at(pauses, *[0.0] * 9)
    last = 1_000.0 + 0.5 + 1 + 2 + 4 + 8 + 16 + 30 + 30
    assert [pauses.left(last + after) for after in (0, 10, 20, 30)] == [30, 20, 10, 0]
