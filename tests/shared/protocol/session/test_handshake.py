"""States of the handshake, and its answer to initialize."""

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


def open_handshake(version="2025-11-25"):
    handshake = Handshake(ADA)
    handshake.initialize(params(version), IDENTITY)
    return handshake


def test_initialize_answers_the_version_asked_for_or_the_newest_handshake_version():
    answers = {version.date: version.date for version in HANDSHAKE_VERSIONS}
    answers |= dict.fromkeys(("2026-07-28", "1900-01-01", "", "2025-11-26"), "2025-11-25")
    offered = {asked: Handshake(None).initialize(params(asked), IDENTITY)["protocolVersion"] for asked in answers}
    assert offered == answers


def test_initialize_answers_server_info_capabilities_and_instructions():
    result = Handshake(None).initialize(params(), IDENTITY)
    assert result["serverInfo"] == {"name": "server", "version": "2"}
    assert (result["capabilities"], result["instructions"]) == ({"tools": {}}, "Use it.")
    identity = Identity(Implementation(name="server", version="2"))
    assert "instructions" not in Handshake(None).initialize(params(), identity)


def test_the_peer_has_the_params_of_initialize_and_the_principal_of_the_transport():
    peer = open_handshake().peer
    assert (peer.version.date, peer.capabilities, peer.principal) == ("2025-11-25", {"roots": {}}, ADA)
    assert peer.info == {"name": "c", "version": "1"}


def test_a_log_level_applies_to_later_peers():
    handshake = open_handshake()
    before = handshake.peer
    handshake.set_log_level("debug")
    assert (before.log_level, handshake.peer.log_level) == ("info", "debug")


def test_handshake_states_change_in_order():
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
    handshake = open_handshake("2024-11-05")
    if finished:
        handshake.complete()
    with pytest.raises(InvalidRequest, match="already initialized"):
        handshake.initialize(params(), IDENTITY)
    assert handshake.peer.version.date == "2024-11-05"
