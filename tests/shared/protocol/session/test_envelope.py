"""The envelope of every request of 2026-07-28."""

import pytest

from shared.errors import InvalidParams, RpcError
from shared.protocol.identity import Identity, Peer, Principal
from shared.protocol.session.envelope import (
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    LOG_LEVEL,
    PROTOCOL_VERSION,
    admit,
    claims_envelope,
    discover,
)
from shared.protocol.types.base import Implementation
from shared.protocol.versions import NEWEST

ADA = Principal("ada")


def envelope(**more):
    return {"_meta": {PROTOCOL_VERSION: "2026-07-28", CLIENT_CAPABILITIES: {}, **more}}


def test_only_the_version_key_marks_an_envelope():
    assert claims_envelope({"_meta": {PROTOCOL_VERSION: None}})
    others = [{}, {"_meta": {}}, {"_meta": {"progressToken": 1}}, {"_meta": [PROTOCOL_VERSION]}, {"_meta": None}]
    assert not any(map(claims_envelope, others))


def test_envelopes_describe_the_peer():
    peer = admit(
        envelope(**{CLIENT_CAPABILITIES: {"roots": {}}, CLIENT_INFO: {"name": "c"}, LOG_LEVEL: "error"}), ADA
    )
    assert (peer.version.date, peer.capabilities, peer.principal) == ("2026-07-28", {"roots": {}}, ADA)
    assert (peer.info, peer.log_level) == ({"name": "c"}, "error")


def test_client_info_and_log_level_are_optional():
    assert admit(envelope(), None).log_level is None
    assert [admit(envelope(**{CLIENT_INFO: info}), None).info for info in (None, "name", [], 5)] == [None] * 4


@pytest.mark.parametrize("missing", [PROTOCOL_VERSION, CLIENT_CAPABILITIES])
def test_missing_required_keys_are_named(missing):
    params = envelope()
    del params["_meta"][missing]
    with pytest.raises(InvalidParams, match=missing):
        admit(params, None)


@pytest.mark.parametrize(
    ("key", "values", "words"),
    [
        (CLIENT_CAPABILITIES, (None, [], "roots", True), CLIENT_CAPABILITIES),
        (LOG_LEVEL, ("verbose", "INFO", 3, True, []), "logLevel"),
    ],
)
def test_invalid_values_are_named(key, values, words):
    for value in values:
        with pytest.raises(InvalidParams, match=words):
            admit(envelope(**{key: value}), None)


@pytest.mark.parametrize("version", ["2025-11-25", "2099-01-01", ""])
def test_refusals_of_versions_list_the_stateless_versions(version):
    with pytest.raises(RpcError) as caught:
        admit(envelope(**{PROTOCOL_VERSION: version}), None)
    assert caught.value.code == -32022
    assert caught.value.data == {"supported": ["2026-07-28"], "requested": version}


def test_discover_offers_the_stateless_versions():
    result = discover(Identity(Implementation(name="a", version="1"), "Use it.", {"tools": {}}), Peer(NEWEST))
    assert result["supportedVersions"] == ["2026-07-28"]
    assert (result["instructions"], result["capabilities"]) == ("Use it.", {"tools": {}})
