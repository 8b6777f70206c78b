"""What is under way, in both directions."""

import pytest

from shared.protocol.methods import REQUESTS
from shared.protocol.peer import Peer
from shared.protocol.session.exchange import Asked, InFlight
from shared.protocol.session.rounds import Round
from shared.protocol.versions import NEWEST


def call():
    return InFlight(REQUESTS[0], Peer(NEWEST), {}, Round())


def test_progress_may_begin_anywhere():
    assert call().advance(-5)


@pytest.mark.parametrize(("next", "grows"), [(1.5, True), (1, False), (0.5, False), (-1, False)])
def test_progress_must_grow(next, grows):
    entry = call()
    entry.advance(1)
    assert entry.advance(next) is grows


def test_progress_that_was_refused_does_not_count():
    entry = call()
    entry.advance(5)
    entry.advance(1)
    assert not entry.advance(4)


def test_our_ids_are_integers_that_never_come_twice():
    asked = Asked()
    assert [asked.enter("a"), asked.enter("a"), asked.enter("b")] == [1, 2, 3]


def test_an_answer_finds_the_call_it_is_about_once():
    asked = Asked()
    id_ = asked.enter("a")
    assert (asked.settle(id_), asked.settle(id_)) == ("a", None)


@pytest.mark.parametrize("id", [2, "1", None, ""])
def test_an_answer_under_another_id_is_about_nothing(id):
    asked = Asked()
    asked.enter("a")
    assert asked.settle(id) is None
