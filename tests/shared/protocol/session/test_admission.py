"""Admission of requests: peer, method, params and round."""

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


def admission(version=None):
    handshake = Handshake(ADA)
    if version is not None:
        handshake.initialize(InitializeParams.model_validate({**HELLO, "protocolVersion": version}), IDENTITY)
    return Admission(method_table(IDENTITY), handshake, SIGNER, lambda: 0.0)


def admit(method, params=None, *, version=None):
    return admission(version).admit(Request(1, method, params or {}), ADA)


def test_requests_after_a_handshake_have_the_peer_of_the_handshake():
    call = admit("tools/list", version="2025-06-18")
    assert (call.peer.version.date, call.peer.principal) == ("2025-06-18", ADA)


@pytest.mark.parametrize("version", [None, "2025-06-18"])
def test_requests_with_an_envelope_have_a_peer_of_their_own(version):
    call = admit("tools/list", {"_meta": ENVELOPE}, version=version)
    assert (call.peer.version.date, call.peer.principal) == ("2026-07-28", ADA)


def test_methods_missing_in_the_version_or_server_are_not_found():
    lacking = [("ping", ENVELOPE), ("initialize", ENVELOPE)]
    for method, meta in [*lacking, *((one, {}) for one in ("server/discover", "prompts/list", "", "Ping"))]:
        with pytest.raises(MethodNotFound, match=f"^method not found: {method}$"):
            admit(method, {"_meta": meta}, version="2025-06-18")
    with pytest.raises(MethodNotFound) as caught:
        admit("x" * 1_000_000, version="2025-06-18")
    assert len(caught.value.message) < 200


def test_params_are_available_as_a_model_and_unchanged():
    params = {"name": "echo", "arguments": {"a": 1}, "later": [1]}
    call = admit("tools/call", params, version="2025-06-18")
    assert (call.params.name, call.params.arguments) == ("echo", {"a": 1})
    assert call.raw == params


def test_invalid_params_are_named_in_the_error():
    for params, where in (
        ({}, "name"),
        ({"name": 1}, "name"),
        ({"name": "a", "arguments": []}, "arguments"),
        ({"_meta": 1, "name": "a"}, "_meta"),
    ):
        with pytest.raises(InvalidParams, match=f"^{where}: "):
            admit("tools/call", params, version="2025-06-18")


def test_a_progress_token_is_a_string_or_an_integer():
    tokens = ["", "a", 0, 10**20]
    assert [admit("ping", {"_meta": {"progressToken": token}}).token for token in tokens] == tokens
    for token in (True, 1.5, [], {}):
        with pytest.raises(InvalidParams, match="progressToken"):
            admit("ping", {"_meta": {"progressToken": token}})


def test_unsupported_versions_are_refused_before_unknown_methods():
    meta = {**ENVELOPE, "io.modelcontextprotocol/protocolVersion": "2099-01-01"}
    with pytest.raises(RpcError) as caught:
        admit("no/such/method", {"_meta": meta})
    assert caught.value.code == -32022


CALL = {"name": "echo", "arguments": {}}


def test_a_request_state_continues_the_rounds_of_its_call():
    state = sign_state("tools/call", CALL, ADA, Round(3), signer=SIGNER, now=0)
    call = admit("tools/call", {**CALL, "requestState": state, "_meta": ENVELOPE})
    assert call.round.number == 4


def test_forged_states_are_refused_only_where_calls_have_rounds():
    forged = {**CALL, "requestState": "forged"}
    with pytest.raises(InvalidParams, match="requestState"):
        admit("tools/call", {**forged, "_meta": ENVELOPE})
    assert admit("tools/call", forged, version="2025-06-18").round == Round()
    assert admit("tools/list", {"requestState": "forged", "_meta": ENVELOPE}).round == Round()
