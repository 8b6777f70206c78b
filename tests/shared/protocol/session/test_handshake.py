"""The handshake as a table of states."""

import pytest

from shared.errors import InvalidRequest
from shared.protocol.identity import Identity, Principal
from shared.protocol.session.handshake import Handshake, State
from shared.protocol.types.base import Implementation
from shared.protocol.types.client import InitializeParams
from shared.protocol.versions import HANDSHAKE_VERSIONS

ADA = Principal("ada")
IDENTITY = Identity(Implementation(name="server", version="2"), "Use it.", {"tools": {}})


def params(version="2025-11-25", **more):
    fields = {"protocolVersion": version, "capabilities": {"roots": {}}, "clientInfo": {"name": "c", "version": "1"}}
    return InitializeParams.model_validate({**fields, **more})


def opened(version="2025-11-25"):
    handshake = Handshake(ADA)
    handshake.initialize(params(version), IDENTITY)
    return handshake


def test_a_version_we_speak_is_echoed_and_any_other_answered_with_the_newest_that_has_a_handshake():
    answers = {version.date: version.date for version in HANDSHAKE_VERSIONS}
    answers |= dict.fromkeys(("2026-07-28", "1900-01-01", "", "2025-11-26"), "2025-11-25")
    told = {asked: Handshake(None).initialize(params(asked), IDENTITY)["protocolVersion"] for asked in answers}
    assert told == answers


def test_the_answer_says_who_serves_and_how():
    result = Handshake(None).initialize(params(), IDENTITY)
    assert result["serverInfo"] == {"name": "server", "version": "2"}
    assert (result["capabilities"], result["instructions"]) == ({"tools": {}}, "Use it.")
    identity = Identity(Implementation(name="server", version="2"))
    assert "instructions" not in Handshake(None).initialize(params(), identity)


def test_the_peer_is_what_the_client_said_and_whom_the_transport_knows():
    peer = opened().peer
    assert (peer.version.date, peer.capabilities, peer.principal) == ("2025-11-25", {"roots": {}}, ADA)
    assert peer.info == {"name": "c", "version": "1"}


def test_a_level_that_is_set_holds_from_then_on():
    handshake = opened()
    before = handshake.peer
    handshake.set_log_level("debug")
    assert (before.log_level, handshake.peer.log_level) == ("info", "debug")


def test_the_states_follow_each_other():
    handshake = Handshake(None)
    handshake.complete()  # too early: it is ignored
    assert handshake.state is State.NEW
    handshake.initialize(params(), IDENTITY)
    assert handshake.state is State.OPENING
    assert handshake.complete()
    assert handshake.state is State.OPEN
    assert not handshake.complete()


@pytest.mark.parametrize("finished", [False, True])
def test_a_second_initialize_is_refused(finished):
    handshake = opened("2024-11-05")
    if finished:
        handshake.complete()
    with pytest.raises(InvalidRequest, match="already initialized"):
        handshake.initialize(params(), IDENTITY)
    assert handshake.peer.version.date == "2024-11-05"
