"""What a peer declared, and what it wants to hear."""

import dataclasses

import pytest

from shared.protocol.peer import LOG_LEVELS, Peer
from shared.protocol.versions import NEWEST, NEWEST_HANDSHAKE


def peer(**fields):
    return Peer(NEWEST_HANDSHAKE, **fields)


@pytest.mark.parametrize(
    ("capabilities", "able"),
    [
        ({}, False),
        ({"sampling": None}, False),
        ({"sampling": {}}, True),
        ({"sampling": {"tools": {}}}, True),
        ({"sampling": True}, True),
    ],
)
def test_a_capability_is_there_when_it_is_declared(capabilities, able):
    assert peer(capabilities=capabilities).can("sampling") is able


@pytest.mark.parametrize(
    ("capabilities", "able"),
    [({}, False), ({"sampling": {}}, False), ({"sampling": {"tools": {}}}, True), ({"sampling": "tools"}, False)],
)
def test_a_nested_capability_needs_every_step(capabilities, able):
    assert peer(capabilities=capabilities).can("sampling", "tools") is able


def test_without_a_level_it_wants_no_log_messages():
    assert not any(peer().wants_log(level) for level in LOG_LEVELS)


def test_it_wants_its_level_and_what_is_worse():
    wanted = [level for level in LOG_LEVELS if peer(log_level="error").wants_log(level)]
    assert wanted == ["error", "critical", "alert", "emergency"]


def test_it_can_not_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        peer().log_level = "debug"


def test_what_is_learned_of_a_peer_lasts_where_there_is_a_handshake():
    assert peer().lasts
    assert not Peer(NEWEST).lasts
