"""Random mixtures of all that clients can do; `play.py` plays them for longer."""

from tests.checks.mixture.play import play

SECONDS = 20.0


def test_no_mixture_of_requests_leaks_or_gets_a_wrong_answer() -> None:
    assert play(SECONDS) == {}
