"""Capabilities that a server declares to each version, and capabilities and log level of a peer."""

import dataclasses

import pytest

from shared.protocol.identity import LOG_LEVELS, Audience, Identity, Peer
from shared.protocol.types.base import Implementation
from shared.protocol.versions import HANDSHAKE_VERSIONS, NEWEST, NEWEST_HANDSHAKE, V2026_07_28

LATER = "org.example/later"


def capabilities_for(capabilities, version):
    spans = {("extensions", LATER): Audience(V2026_07_28)}
    return Identity(Implementation(name="a", version="1"), None, capabilities, spans).capabilities_for(version)


def test_extensions_are_declared_only_to_versions_that_have_their_methods():
    capabilities = {"extensions": {"org.example/x": {"a": 1}, LATER: {"directoryRead": True}}}
    for version in HANDSHAKE_VERSIONS:
        assert capabilities_for(capabilities, version) == {"extensions": {"org.example/x": {"a": 1}}}
        assert capabilities_for({"extensions": {LATER: {}}}, version) == {}
    assert capabilities_for({"extensions": {LATER: {}}}, V2026_07_28) == {"extensions": {LATER: {}}}


def peer(**fields):
    return Peer(NEWEST_HANDSHAKE, **fields)


def test_capabilities_need_each_part_of_their_path_declared():
    able = [({}, False), ({"sampling": None}, False), ({"sampling": {}}, True), ({"sampling": True}, True)]
    assert [peer(capabilities=one).can("sampling") for one, _ in able] == [is_there for _, is_there in able]
    able = [
        ({}, False),
        ({"sampling": {}}, False),
        ({"sampling": "tools"}, False),
        ({"sampling": {"tools": {}}}, True),
    ]
    assert [peer(capabilities=one).can("sampling", "tools") for one, _ in able] == [is_there for _, is_there in able]


def test_peers_want_log_messages_of_their_level_and_above():
    assert not any(peer().wants_log(level) for level in LOG_LEVELS)
    wanted = [level for level in LOG_LEVELS if peer(log_level="error").wants_log(level)]
    assert wanted == ["error", "critical", "alert", "emergency"]


def test_peers_are_immutable():
    with pytest.raises(dataclasses.FrozenInstanceError):
        peer().log_level = "debug"


def test_only_peers_of_handshake_versions_have_a_handshake():
    assert peer().has_handshake
    assert not Peer(NEWEST).has_handshake
