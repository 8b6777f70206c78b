"""Which requests may be served, and as whom."""

import pytest

from shared.errors import InvalidParams, MethodNotFound, RpcError
from shared.protocol.identity import Identity, Principal
from shared.protocol.methods import method_table
from shared.protocol.session.admission import Admission
from shared.protocol.session.handshake import Handshake
from shared.protocol.session.questions import Round, sign_state
from shared.protocol.signing import Signer
from shared.protocol.types.base import Implementation
from shared.protocol.types.client import InitializeParams
from shared.protocol.wire.jsonrpc import Request

ADA = Principal("ada")
IDENTITY = Identity(Implementation(name="a", version="1"), capabilities={"tools": {}})
SIGNER = Signer(b"key")
ENVELOPE = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}


def gate(version=None):
    handshake = Handshake(ADA)
    if version is not None:
        handshake.initialize(InitializeParams.model_validate({**HELLO, "protocolVersion": version}), IDENTITY)
    return Admission(method_table(IDENTITY), handshake, SIGNER, lambda: 0.0)


def admit(method, params=None, *, version=None):
    return gate(version).admit(Request(1, method, params or {}), ADA)


def test_after_it_the_peer_is_the_handshakes():
    call = admit("tools/list", version="2025-06-18")
    assert (call.peer.version.date, call.peer.principal) == ("2025-06-18", ADA)


@pytest.mark.parametrize("version", [None, "2025-06-18"])
def test_a_request_with_an_envelope_is_its_own_peer_at_any_time(version):
    call = admit("tools/list", {"_meta": ENVELOPE}, version=version)
    assert (call.peer.version.date, call.peer.principal) == ("2026-07-28", ADA)


def test_a_method_that_its_version_or_server_lacks_does_not_exist():
    lacking = [("ping", ENVELOPE), ("initialize", ENVELOPE)]
    for method, meta in [*lacking, *((one, {}) for one in ("server/discover", "prompts/list", "", "Ping"))]:
        with pytest.raises(MethodNotFound, match=f"^method not found: {method}$"):
            admit(method, {"_meta": meta}, version="2025-06-18")
    with pytest.raises(MethodNotFound) as caught:
        admit("x" * 1_000_000, version="2025-06-18")
    assert len(caught.value.message) < 200


def test_params_become_a_model_and_stay_as_they_came():
    params = {"name": "echo", "arguments": {"a": 1}, "later": [1]}
    call = admit("tools/call", params, version="2025-06-18")
    assert (call.params.name, call.params.arguments) == ("echo", {"a": 1})
    assert call.raw == params


def test_params_that_do_not_fit_are_named():
    for params, where in (
        ({}, "name"),
        ({"name": 1}, "name"),
        ({"name": "a", "arguments": []}, "arguments"),
        ({"_meta": 1, "name": "a"}, "_meta"),
    ):
        with pytest.raises(InvalidParams, match=f"^{where}: "):
            admit("tools/call", params, version="2025-06-18")


def test_a_progress_token_is_a_string_or_an_integer():
    kept = ["", "a", 0, 10**20]
    assert [admit("ping", {"_meta": {"progressToken": token}}).token for token in kept] == kept
    for token in (True, 1.5, [], {}):
        with pytest.raises(InvalidParams, match="progressToken"):
            admit("ping", {"_meta": {"progressToken": token}})


def test_a_version_that_is_not_served_is_refused_before_anything_else():
    meta = {**ENVELOPE, "io.modelcontextprotocol/protocolVersion": "2099-01-01"}
    with pytest.raises(RpcError) as caught:
        admit("no/such/method", {"_meta": meta})
    assert caught.value.code == -32022


CALL = {"name": "echo", "arguments": {}}


def test_a_state_brings_the_round_back():
    state = sign_state("tools/call", CALL, ADA, Round(3), signer=SIGNER, now=0)
    call = admit("tools/call", {**CALL, "requestState": state, "_meta": ENVELOPE})
    assert call.round.number == 4


def test_a_forged_state_is_refused_and_ignored_where_there_are_no_rounds():
    forged = {**CALL, "requestState": "forged"}
    with pytest.raises(InvalidParams, match="requestState"):
        admit("tools/call", {**forged, "_meta": ENVELOPE})
    assert admit("tools/call", forged, version="2025-06-18").round == Round()
    assert admit("tools/list", {"requestState": "forged", "_meta": ENVELOPE}).round == Round()
