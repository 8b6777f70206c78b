"""Document 002: which connections speak it, what its messages mean to the core, and what its peer is told."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.protocol.types.base import CLIENT_CAPABILITIES, PROTOCOL_VERSION
from shared.protocol.wire.codec import Codec
from shared.protocol.wire.jsonrpc import Failure, Malformed, Message, Notification, Request, Response
from tests.wire import CLIENT_INFO, STATELESS

ENVELOPE = {PROTOCOL_VERSION: STATELESS, CLIENT_CAPABILITIES: {}}
CALL = {"method": "call_tool", "params": {"name": "add", "arguments": {"a": 1}}, "id": 1}
STANDARD = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": CLIENT_INFO}


class Talk:
    """One connection of a peer that may speak the dialect."""

    def __init__(self) -> None:
        self.codec = Codec(dialects=True)

    def says(self, message: object) -> list[Message]:
        return self.codec.feed(json.dumps(message).encode() + b"\n")

    def request(self, message: object) -> Request:
        (request,) = self.says(message)
        assert isinstance(request, Request)
        return request

    def refused(self, message: object) -> dict[str, Any]:
        (refusal,) = self.says(message)
        assert isinstance(refusal, Malformed)
        assert not refusal.silent
        return self.hears(refusal.failure)

    def hears(self, message: Message) -> dict[str, Any]:
        return json.loads(self.codec.encode(message))


# Which connections speak it


def test_the_first_message_settles_it():
    asked = ({}, {"version": "0.7.0"}, {"minVersion": "0.1.0", "maxVersion": "0.7.0", "client": "mine"})
    own = [*(("initialize", params) for params in (*asked, {"protocolVersion": "0.5.0"}))]
    for method, params in [*own, ("call_tool", {}), ("read_resource", None), ("render_prompt", [])]:
        talk = Talk()
        talk.says({"method": method, "params": params, "id": 1})
        assert talk.codec.dialect is not None
        assert talk.codec.dialect.name == "002"


def test_a_connection_of_the_specification_is_read_as_if_there_were_no_dialects():
    versions = ({"protocolVersion": "2025-11-25"}, {"protocolVersion": 7}, {"version": "0.7.0", "capabilities": {}})
    standard = (STANDARD, {**STANDARD, "protocolVersion": "0.5.0"}, *versions, [])
    for message in (
        *({"method": "initialize", "params": params} for params in standard),
        *({"method": "initialize"}, {"method": "tools/call", "params": {"name": "add"}}, {"method": "call_tools"}),
        *({"method": 7}, {"result": {}}),
    ):
        talk, plain = Talk(), Codec()
        line = json.dumps({"jsonrpc": "2.0", "id": 1, **message}).encode() + b"\n"
        assert talk.codec.feed(line) == plain.feed(line)
        assert talk.codec.dialect is None


# What a request becomes


def test_a_call_is_one_of_the_specification_without_a_handshake():
    params = {"name": "add", "arguments": {"a": 1}, "_meta": ENVELOPE}
    assert Talk().request(CALL) == Request(1, "tools/call", params)


def test_what_the_peer_says_in_meta_is_not_taken():
    request = Talk().request({"method": "read_resource", "params": {"uri": "a:", "_meta": {"own": 1}}, "id": 1})
    assert request.params["_meta"] == ENVELOPE


def test_an_answer_has_the_id_and_the_head_of_its_request():
    talk, head = Talk(), {"jsonrpc": "2.0"}
    for id_ in ("req-1", 7, -1, ""):
        bare, headed = talk.request({**CALL, "id": id_}), talk.request({**head, **CALL, "id": f"{id_} with a head"})
        told = talk.hears(Response(headed.id, {"content": []}))
        assert told == {**head, "id": f"{id_} with a head", "result": {"content": [], "isError": False}}
        told = talk.hears(Response(bare.id, {"content": []}))
        assert told == {"id": id_, "result": {"content": [], "isError": False}}
    told = talk.hears(Failure(talk.request(CALL).id, -32603, "the disk is full"))
    assert told == {"id": 1, "error": {"code": 4002, "message": "the disk is full"}}


def test_an_id_in_use_is_refused_and_the_first_goes_on():
    talk = Talk()
    first = talk.request(CALL)
    assert talk.refused(CALL)["error"]["code"] == -32600
    assert talk.hears(Response(first.id, {"content": []}))["id"] == 1
    talk.request(CALL)


def test_its_notifications_mean_nothing():
    talk = Talk()
    talk.request(CALL)
    assert talk.says({"method": "notifications/cancelled", "params": {"requestId": 1}}) == [
        Notification("notifications/cancelled")
    ]


def test_nothing_is_told_but_answers():
    talk = Talk()
    talk.request(CALL)
    assert talk.codec.encode(Notification("notifications/tools/list_changed")) == b""
    assert talk.codec.encode(Response(99, {"content": []})) == b""


def test_a_result_that_can_not_be_written_is_an_internal_error():
    talk = Talk()
    told = talk.hears(Response(talk.request(CALL).id, {"resultType": "input_required"}))
    assert (told["id"], told["error"]["message"]) == (1, "internal error")
    assert talk.request(CALL)


# What is refused


def test_a_request_that_is_none_is_refused():
    codes: list[tuple[dict[str, Any], int, int | None]] = [
        ({"method": "tools/list", "id": 2}, -32601, 2),
        ({"method": "mcp/listTools", "id": 2}, -32601, 2),
        ({"method": "list_tools", "id": 2}, -32601, 2),
        ({"method": 7, "id": 2}, -32600, 2),
        ({"id": 2}, -32600, 2),
        ({}, -32600, None),
        ({"method": 7}, -32600, None),
        *(({**CALL, "id": id_}, -32600, None) for id_ in (1.5, True, None)),
        ({**CALL, "jsonrpc": None}, -32600, 1),
        ({**CALL, "params": None}, -32602, 1),
    ]
    talk = Talk()
    talk.request({**CALL, "id": "first"})
    told = [(message, talk.refused(message)) for message, *_ in codes]
    assert [(message, one["error"]["code"], one.get("id")) for message, one in told] == codes


def test_a_text_that_is_no_object_is_refused():
    talk = Talk()
    talk.request(CALL)
    for line in (b"{", b"[1]", b'[{"method": "call_tool", "id": 1}]'):
        (refusal,) = talk.codec.feed(line + b"\n")
        assert isinstance(refusal, Malformed)
        assert talk.hears(refusal.failure).keys() == {"jsonrpc", "error"}


@pytest.mark.parametrize("is_first", [True, False])
def test_what_the_parser_refuses_is_answered_in_the_dialect(is_first: bool):
    for members, code, id_, reason in (
        (rb'"id": 2, "params": {"name": "\ud800"}', -32602, 2, "params.name is not valid"),
        (b'"id": 2, "params": {"name": "add", "arguments": {"a": NaN}}', -32602, 2, "params.arguments.a is NaN"),
        (b'"id": 2, "params": {"name": "add"}, "x": NaN', -32600, 2, "x is NaN"),
        (b'"id": 2, "params": %b' % (b"[" * 300 + b"]" * 300), -32602, 2, '"params" must be'),
        (rb'"id": "\ud800", "params": {"name": "add"}', -32600, None, '"id" must be'),
    ):
        talk = Talk()
        if not is_first:
            talk.request({**CALL, "id": "first"})
        (refusal,) = talk.codec.feed(b'{"method": "call_tool", %b}\n' % members)
        assert isinstance(refusal, Malformed)
        told = talk.hears(refusal.failure)
        assert (told["error"]["code"], told.get("id"), "jsonrpc" in told) == (code, id_, False)
        assert told["error"]["message"].startswith(reason)


def test_what_wants_no_answer_gets_none():
    talk = Talk()
    talk.request({**CALL, "id": "first"})
    for message in ({"result": {}, "id": 1}, {"error": {}, "id": 1}):
        (refusal,) = talk.says(message)
        assert isinstance(refusal, Malformed)
        assert refusal.silent


WORDS = st.sampled_from(
    ["jsonrpc", "2.0", "method", "id", "params", "result", "initialize", "call_tool", "name", "uri"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | WORDS | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS | st.text(), inner, max_size=6),
    max_leaves=20,
)
OBJECTS = st.fixed_dictionaries(
    {"method": st.sampled_from(["initialize", "call_tool", "read_resource", "render_prompt", "x"])},
    optional={"jsonrpc": WORDS, "id": JSON, "params": JSON},
)


@pytest.mark.slow
@given(st.lists(JSON | OBJECTS, max_size=5))
def test_whatever_comes_is_one_message_and_its_answer_is_json(values: list[Any]):
    talk = Talk()
    talk.request({**CALL, "id": "first"})
    for value in values:
        (message,) = talk.says(value)
        match message:
            case Request(id_):
                assert talk.hears(Failure(id_, -32603, "why"))["error"]["message"] == "why"
            case Malformed(answer, silent=False):
                assert talk.hears(answer)["error"]["code"] in (-32600, -32601, -32602, 1001, 5001)


def test_nothing_is_kept_of_requests_that_are_over():
    talk = Talk()
    for _ in range(2):
        talk.hears(Response(talk.request(CALL).id, {"content": []}))
        assert "in use" not in talk.refused({**CALL, "params": {}})["error"]["message"]
