"""Document 002: its connections, its messages as those of the specification, and the answers to its peer."""

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


class Connection:
    """A connection of a peer that may speak the dialect."""

    def __init__(self) -> None:
        self.codec = Codec(dialects=True)

    def send(self, message: object) -> list[Message]:
        return self.codec.feed(json.dumps(message).encode() + b"\n")

    def request(self, message: object) -> Request:
        (request,) = self.send(message)
        assert isinstance(request, Request)
        return request

    def refused(self, message: object) -> dict[str, Any]:
        (refusal,) = self.send(message)
        assert isinstance(refusal, Malformed)
        assert not refusal.silent
        return self.encoded(refusal.failure)

    def encoded(self, message: Message) -> dict[str, Any]:
        return json.loads(self.codec.encode(message))


# Choice of the dialect


def test_the_first_message_decides_the_dialect():
    asked = ({}, {"version": "0.7.0"}, {"minVersion": "0.1.0", "maxVersion": "0.7.0", "client": "mine"})
    own = [*(("initialize", params) for params in (*asked, {"protocolVersion": "0.5.0"}))]
    for method, params in [*own, ("call_tool", {}), ("read_resource", None), ("render_prompt", [])]:
        connection = Connection()
        connection.send({"method": method, "params": params, "id": 1})
        assert connection.codec.dialect is not None
        assert connection.codec.dialect.document == "002"


def test_messages_of_the_specification_are_read_without_a_dialect():
    versions = ({"protocolVersion": "2025-11-25"}, {"protocolVersion": 7}, {"version": "0.7.0", "capabilities": {}})
    standard = (STANDARD, {**STANDARD, "protocolVersion": "0.5.0"}, *versions, [])
    for message in (
        *({"method": "initialize", "params": params} for params in standard),
        *({"method": "initialize"}, {"method": "tools/call", "params": {"name": "add"}}, {"method": "call_tools"}),
        *({"method": 7}, {"result": {}}),
    ):
        connection, plain = Connection(), Codec()
        line = json.dumps({"jsonrpc": "2.0", "id": 1, **message}).encode() + b"\n"
        assert connection.codec.feed(line) == plain.feed(line)
        assert connection.codec.dialect is None


# Requests


def test_call_tool_becomes_tools_call_with_an_envelope():
    params = {"name": "add", "arguments": {"a": 1}, "_meta": ENVELOPE}
    assert Connection().request(CALL) == Request(1, "tools/call", params)


def test_meta_of_the_peer_is_ignored():
    request = Connection().request({"method": "read_resource", "params": {"uri": "a:", "_meta": {"own": 1}}, "id": 1})
    assert request.params["_meta"] == ENVELOPE


def test_answers_have_the_id_and_the_jsonrpc_member_of_their_request():
    connection, head = Connection(), {"jsonrpc": "2.0"}
    for id_ in ("req-1", 7, -1, ""):
        bare, headed = (
            connection.request({**CALL, "id": id_}),
            connection.request({**head, **CALL, "id": f"{id_} with a head"}),
        )
        answer = connection.encoded(Response(headed.id, {"content": []}))
        assert answer == {**head, "id": f"{id_} with a head", "result": {"content": [], "isError": False}}
        answer = connection.encoded(Response(bare.id, {"content": []}))
        assert answer == {"id": id_, "result": {"content": [], "isError": False}}
    answer = connection.encoded(Failure(connection.request(CALL).id, -32603, "the disk is full"))
    assert answer == {"id": 1, "error": {"code": 4002, "message": "the disk is full"}}


def test_requests_with_an_id_in_use_are_refused():
    connection = Connection()
    first = connection.request(CALL)
    assert connection.refused(CALL)["error"]["code"] == -32600
    assert connection.encoded(Response(first.id, {"content": []}))["id"] == 1
    connection.request(CALL)


def test_notifications_of_the_peer_have_no_params():
    connection = Connection()
    connection.request(CALL)
    assert connection.send({"method": "notifications/cancelled", "params": {"requestId": 1}}) == [
        Notification("notifications/cancelled")
    ]


def test_notifications_and_unmatched_answers_are_not_sent():
    connection = Connection()
    connection.request(CALL)
    assert connection.codec.encode(Notification("notifications/tools/list_changed")) == b""
    assert connection.codec.encode(Response(99, {"content": []})) == b""


def test_results_without_a_form_in_the_dialect_are_internal_errors():
    connection = Connection()
    answer = connection.encoded(Response(connection.request(CALL).id, {"resultType": "input_required"}))
    assert (answer["id"], answer["error"]["message"]) == (1, "internal error")
    assert connection.request(CALL)


# Refusals


def test_malformed_requests_are_refused():
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
    connection = Connection()
    connection.request({**CALL, "id": "first"})
    answer = [(message, connection.refused(message)) for message, *_ in codes]
    assert [(message, one["error"]["code"], one.get("id")) for message, one in answer] == codes


def test_text_other_than_a_json_object_is_refused():
    connection = Connection()
    connection.request(CALL)
    for line in (b"{", b"[1]", b'[{"method": "call_tool", "id": 1}]'):
        (refusal,) = connection.codec.feed(line + b"\n")
        assert isinstance(refusal, Malformed)
        assert connection.encoded(refusal.failure).keys() == {"jsonrpc", "error"}


@pytest.mark.parametrize("is_first", [True, False])
def test_parse_errors_are_answered_in_the_dialect(is_first: bool):
    for members, code, id_, reason in (
        (rb'"id": 2, "params": {"name": "\ud800"}', -32602, 2, "params.name is not valid"),
        (b'"id": 2, "params": {"name": "add", "arguments": {"a": NaN}}', -32602, 2, "params.arguments.a is NaN"),
        (b'"id": 2, "params": {"name": "add"}, "x": NaN', -32600, 2, "x is NaN"),
        (b'"id": 2, "params": %b' % (b"[" * 300 + b"]" * 300), -32602, 2, '"params" must be'),
        (rb'"id": "\ud800", "params": {"name": "add"}', -32600, None, '"id" must be'),
    ):
        connection = Connection()
        if not is_first:
            connection.request({**CALL, "id": "first"})
        (refusal,) = connection.codec.feed(b'{"method": "call_tool", %b}\n' % members)
        assert isinstance(refusal, Malformed)
        answer = connection.encoded(refusal.failure)
        assert (answer["error"]["code"], answer.get("id"), "jsonrpc" in answer) == (code, id_, False)
        assert answer["error"]["message"].startswith(reason)


def test_malformed_answers_get_no_answer():
    connection = Connection()
    connection.request({**CALL, "id": "first"})
    for message in ({"result": {}, "id": 1}, {"error": {}, "id": 1}):
        (refusal,) = connection.send(message)
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
def test_messages_of_any_form_are_one_message_with_a_json_answer(values: list[Any]):
    connection = Connection()
    connection.request({**CALL, "id": "first"})
    for value in values:
        (message,) = connection.send(value)
        match message:
            case Request(id_):
                assert connection.encoded(Failure(id_, -32603, "why"))["error"]["message"] == "why"
            case Malformed(answer, silent=False):
                assert connection.encoded(answer)["error"]["code"] in (-32600, -32601, -32602, 1001, 5001)


def test_answered_requests_free_their_id():
    connection = Connection()
    for _ in range(2):
        connection.encoded(Response(connection.request(CALL).id, {"content": []}))
        assert "in use" not in connection.refused({**CALL, "params": {}})["error"]["message"]
