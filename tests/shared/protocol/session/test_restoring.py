"""What lasts of a session: another one, made of its snapshot, goes on where it was."""

import pytest

from shared.protocol.session.events import Change
from shared.protocol.session.handshake import NEW
from shared.protocol.session.questions import asker
from shared.protocol.wire.jsonrpc import Notification, Request, Response
from tests.shared.protocol.session.test_server import ADA, FORM, HANDSHAKES, begin, sent, session

PARAMS = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
INITIALIZE = Request("hello", "initialize", PARAMS)


def moved(made, **other):
    """A session at another replica that goes on from where `made` is."""
    there = session(None, **other)
    there.restore(made.snapshot())
    return there


@pytest.mark.parametrize("version", HANDSHAKES)
def test_a_restored_session_knows_its_peer(version):
    made = session(version, {"roots": {}})
    peer = begin(moved(made), "c").peer
    assert (peer.version.date, peer.capabilities, peer.principal) == (version, {"roots": {}}, ADA)
    assert peer.owner == begin(made, "c").peer.owner


def test_a_restored_session_is_not_initialized_again():
    there = moved(session())
    there.receive(INITIALIZE)
    assert [message.code for message in sent(there)] == [-32600]


def test_what_is_sent_unasked_waits_for_the_client_to_be_ready():
    made = session(None)
    made.receive(INITIALIZE)
    opening, opened = moved(made), moved(session())
    for there in (opening, opened):
        there.deliver(Change("tools"))
    assert (len(sent(opening)), len(sent(opened))) == (0, 1)


def test_a_snapshot_has_the_log_level_and_how_often_roots_changed():
    made = session()
    made.receive(Request(1, "logging/setLevel", {"level": "error"}))
    made.receive(Notification("notifications/roots/list_changed"))
    there = moved(made)
    assert there.roots_changed == 1
    assert begin(there, "c").peer.log_level == "error"


@pytest.mark.parametrize(
    "message",
    [Request(1, "logging/setLevel", {"level": "error"}), Notification("notifications/roots/list_changed")],
    ids=["level", "roots"],
)
def test_a_session_knows_whether_a_snapshot_is_out_of_date(message):
    made = session()
    before = made.snapshot()
    assert made.is_at(before)
    made.receive(message)
    assert not made.is_at(before)
    assert made.is_at(made.snapshot())
    assert session(None).is_at(NEW)


def test_calls_and_questions_stay_where_they_are():
    made = session(capabilities={"elicitation": {}})
    call = begin(made, "c")
    asked = made.ask(call, {"form": FORM})["form"]
    there = moved(made)
    assert there.receive(Response(asked, {})) == []
    assert begin(there, "c") is not call
    made.restore(there.snapshot())
    assert len(made.receive(Response(asked, {}))) == 1


@pytest.mark.parametrize(
    ("replica", "first"), [(0, 1), (1, (1 << 32) + 1), ((1 << 20) - 1, (1 << 52) - (1 << 32) + 1)]
)
def test_a_question_tells_which_replica_asked_it(replica, first):
    made = session(capabilities={"elicitation": {}}, replica=replica)
    asked = made.ask(begin(made, "c"), {"form": FORM})["form"]
    assert (asked, asker(asked)) == (first, replica)
    assert asked < 1 << 53


@pytest.mark.parametrize("id", [None, "1", -1, 0, True, 1.0])
def test_what_is_no_id_of_ours_was_asked_by_nobody(id):
    assert asker(id) is None


def test_peers_of_two_replicas_own_nothing_in_common():
    owners = [begin(session(replica=replica), "c").peer.session for replica in (0, 1, 2)]
    assert [owner >> 32 for owner in owners] == [0, 1, 2]
