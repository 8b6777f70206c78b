"""What a server says of itself, to peers of each version."""

import pytest

from shared.protocol.identity import Identity
from shared.protocol.types.base import Implementation
from shared.protocol.versions import HANDSHAKE_VERSIONS, V2026_07_28

LATER = "org.example/later"


def told(capabilities, version):
    since = {("extensions", LATER): V2026_07_28}
    return Identity(Implementation(name="a", version="1"), None, capabilities, since).capabilities_in(version)


@pytest.mark.parametrize("version", HANDSHAKE_VERSIONS, ids=str)
def test_extensions_reach_every_version_but_those_whose_methods_came_later(version):
    capabilities = {"extensions": {"org.example/x": {"a": 1}, LATER: {"directoryRead": True}}}
    assert told(capabilities, version) == {"extensions": {"org.example/x": {"a": 1}}}
    assert told({"extensions": {LATER: {}}}, version) == {}


def test_an_extension_reaches_the_version_that_its_methods_came_with():
    assert told({"extensions": {LATER: {}}}, V2026_07_28) == {"extensions": {LATER: {}}}
