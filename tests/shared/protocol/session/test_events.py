"""A call from its admission to its answer."""

from shared.protocol.identity import Peer
from shared.protocol.methods import REQUESTS
from shared.protocol.session.events import Call
from shared.protocol.versions import NEWEST


def call():
    return Call(1, REQUESTS[0], None, Peer(NEWEST), {})


def test_two_calls_of_one_id_are_two():
    one, other = call(), call()
    assert one != other
    assert len({one, other}) == 2


def test_progress_may_begin_anywhere_and_must_grow():
    assert call().advance(-5)
    for following, grows in ((1.5, True), (1, False), (0.5, False), (-1, False)):
        entry = call()
        entry.advance(1)
        assert entry.advance(following) is grows


def test_progress_that_was_refused_does_not_count():
    entry = call()
    entry.advance(5)
    entry.advance(1)
    assert not entry.advance(4)
