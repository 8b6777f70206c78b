"""Identity and progress of calls."""

from shared.protocol.identity import Peer
from shared.protocol.methods import REQUESTS
from shared.protocol.session.events import Call
from shared.protocol.versions import NEWEST


def call():
    return Call(1, REQUESTS[0], None, Peer(NEWEST), {})


def test_calls_with_the_same_id_are_not_equal():
    one, other = call(), call()
    assert one != other
    assert len({one, other}) == 2


def test_progress_must_increase_from_any_first_value():
    assert call().advance(-5)
    for following, grows in ((1.5, True), (1, False), (0.5, False), (-1, False)):
        entry = call()
        entry.advance(1)
        assert entry.advance(following) is grows


def test_refused_progress_does_not_lower_the_last_value():
    entry = call()
    entry.advance(5)
    entry.advance(1)
    assert not entry.advance(4)
