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


@pytest.mark.parametrize("version", HANDSHAKE_VERSIONS, ids=str)
def test_a_version_we_speak_is_echoed(version):
    assert Handshake(None).initialize(params(version.date), IDENTITY)["protocolVersion"] == version.date


@pytest.mark.parametrize("asked", ["2026-07-28", "1900-01-01", "", "2025-11-26"])
def test_any_other_version_is_answered_with_the_newest_that_has_a_handshake(asked):
    assert Handshake(None).initialize(params(asked), IDENTITY)["protocolVersion"] == "2025-11-25"


def test_the_answer_says_who_serves_and_how():
    result = Handshake(None).initialize(params(), IDENTITY)
    assert result["serverInfo"] == {"name": "server", "version": "2"}
    assert result["capabilities"] == {"tools": {}}
    assert result["instructions"] == "Use it."


def test_without_instructions_the_key_is_left_out():
    identity = Identity(Implementation(name="server", version="2"))
    assert "instructions" not in Handshake(None).initialize(params(), identity)


def test_the_peer_is_what_the_client_said_and_whom_the_transport_knows():
    peer = opened().peer
    assert (peer.version.date, peer.capabilities, peer.principal) == ("2025-11-25", {"roots": {}}, ADA)
    assert peer.info == {"name": "c", "version": "1"}


def test_before_a_level_is_set_it_is_info():
    assert opened().peer.log_level == "info"


def test_a_level_that_is_set_holds_from_then_on():
    handshake = opened()
    before = handshake.peer
    handshake.set_log_level("debug")
    assert (before.log_level, handshake.peer.log_level) == ("info", "debug")


def test_the_states_follow_each_other():
    handshake = Handshake(None)
    assert handshake.state is State.NEW
    handshake.initialize(params(), IDENTITY)
    assert handshake.state is State.OPENING
    handshake.initialized()
    assert handshake.state is State.OPEN


def test_initialized_before_initialize_is_ignored():
    handshake = Handshake(None)
    handshake.initialized()
    assert handshake.state is State.NEW


@pytest.mark.parametrize("finished", [False, True])
def test_a_second_initialize_is_refused(finished):
    handshake = opened("2024-11-05")
    if finished:
        handshake.initialized()
    with pytest.raises(InvalidRequest, match="initialized already"):
        handshake.initialize(params(), IDENTITY)
    assert handshake.peer.version.date == "2024-11-05"


def test_one_notification_completes_it():
    handshake = opened()
    assert handshake.initialized()
    assert not handshake.initialized()
