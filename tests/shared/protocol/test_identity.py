"""What a server says of itself, to peers of each version; what a peer declared, and what it wants to hear."""

import dataclasses

import pytest

from shared.protocol.identity import LOG_LEVELS, Identity, Peer, Span
from shared.protocol.types.base import Implementation
from shared.protocol.versions import HANDSHAKE_VERSIONS, NEWEST, NEWEST_HANDSHAKE, V2026_07_28

LATER = "org.example/later"


def told(capabilities, version):
    spans = {("extensions", LATER): Span(V2026_07_28)}
    return Identity(Implementation(name="a", version="1"), None, capabilities, spans).capabilities_for(version)


def test_extensions_reach_every_version_but_those_whose_methods_came_later():
    capabilities = {"extensions": {"org.example/x": {"a": 1}, LATER: {"directoryRead": True}}}
    for version in HANDSHAKE_VERSIONS:
        assert told(capabilities, version) == {"extensions": {"org.example/x": {"a": 1}}}
        assert told({"extensions": {LATER: {}}}, version) == {}
    assert told({"extensions": {LATER: {}}}, V2026_07_28) == {"extensions": {LATER: {}}}


def peer(**fields):
    return Peer(NEWEST_HANDSHAKE, **fields)


def test_a_capability_is_there_when_every_step_of_it_is_declared():
    able = [({}, False), ({"sampling": None}, False), ({"sampling": {}}, True), ({"sampling": True}, True)]
    assert [peer(capabilities=one).can("sampling") for one, _ in able] == [is_there for _, is_there in able]
    able = [
        ({}, False),
        ({"sampling": {}}, False),
        ({"sampling": "tools"}, False),
        ({"sampling": {"tools": {}}}, True),
    ]
    assert [peer(capabilities=one).can("sampling", "tools") for one, _ in able] == [is_there for _, is_there in able]


def test_it_wants_its_level_and_what_is_worse_and_nothing_without_one():
    assert not any(peer().wants_log(level) for level in LOG_LEVELS)
    wanted = [level for level in LOG_LEVELS if peer(log_level="error").wants_log(level)]
    assert wanted == ["error", "critical", "alert", "emergency"]


def test_it_can_not_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        peer().log_level = "debug"


def test_what_is_learned_of_a_peer_lasts_where_there_is_a_handshake():
    assert peer().has_handshake
    assert not Peer(NEWEST).has_handshake
