"""Random mixtures of all that clients can do; `play.py` plays them for longer."""

from tests.checks.mixture.play import play

SECONDS = 20.0


def test_no_mixture_leaves_anything_or_is_answered_wrongly() -> None:
    assert play(SECONDS) == {}
