"""Document 000: its messages as those of the specification, and the answers to its peer."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.errors import InvalidRequest, MethodNotFound
from shared.protocol.types.base import CLIENT_CAPABILITIES, LOG_LEVEL, PROTOCOL_VERSION, SUBSCRIPTION_ID
from shared.protocol.wire.codec import Codec
from shared.protocol.wire.jsonrpc import Failure, Malformed, Message, Notification, Request, Response, failure
from tests.wire import STATELESS

ENVELOPE = {PROTOCOL_VERSION: STATELESS, CLIENT_CAPABILITIES: {}}
Json = dict[str, Any]


def text(method: str, params: Any = None, **more: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **more}).encode()


class Connection:
    """A connection of a peer that speaks the dialect."""

    def __init__(self) -> None:
        self.codec = Codec(dialects=True)

    def send(self, method: str, params: Any = None, **more: Any) -> list[Message]:
        return self.codec.feed(text(method, params, **more) + b"\n")

    def request(self, method: str, params: Any = None, *, id: Any = 1) -> Request:
        (request,) = self.send(method, params, id=id)
        assert isinstance(request, Request)
        return request

    def refused(self, method: str, params: Any = None, **more: Any) -> Json:
        (message,) = self.send(method, params, **more)
        assert isinstance(message, Malformed)
        assert not message.silent
        return self.encoded(message.failure)

    def encoded(self, message: Message) -> Json:
        return json.loads(self.codec.encode(message))


# Requests


def test_methods_of_the_document_need_no_handshake():
    request = Connection().request("mcp/tool/execute", {"toolId": "a/b", "inputs": {}})
    assert request.method == "dialects/000/tool/execute"
    assert request.params == {"toolId": "a/b", "inputs": {}, "_meta": ENVELOPE}


def test_methods_of_the_specification_keep_their_params():
    assert Connection().request("mcp/tools/list", {"cursor": "x"}).params == {"cursor": "x", "_meta": ENVELOPE}
    assert Connection().request("mcp/tools/list").method == "tools/list"


def test_methods_of_the_handshake_era_need_initialize_and_have_no_envelope():
    connection = Connection()
    for method in ("resources/subscribe", "logging/setLevel"):
        answer = connection.refused(f"mcp/{method}", {}, id=1)
        assert answer["error"] == {"code": -32600, "message": 'send "mcp/initialize" first'}
    connection.send("mcp/initialize", id=0)
    for id_, method in enumerate(("ping", "resources/subscribe", "logging/setLevel"), 1):
        request = connection.request(f"mcp/{method}", {"uri": "x"}, id=id_)
        assert (request.method, request.params) == (method, {"uri": "x"})


def test_a_log_level_applies_to_the_calls_that_follow():
    connection = Connection()
    connection.send("mcp/initialize", id=0)
    connection.send("mcp/logging/setLevel", {"level": "loud"}, id=1)
    assert connection.request("mcp/listTools", id=2).params["_meta"] == ENVELOPE
    connection.send("mcp/logging/setLevel", {"level": "info"}, id=3)
    assert connection.request("mcp/listTools", id=4).params["_meta"] == {**ENVELOPE, LOG_LEVEL: "info"}
    own = {"_meta": {LOG_LEVEL: "error"}}
    assert connection.request("mcp/listTools", own, id=5).params["_meta"] == {**ENVELOPE, LOG_LEVEL: "error"}


def test_internal_names_of_dialect_methods_are_unknown_on_the_wire():
    connection = Connection()
    request = connection.request("mcp/dialects/000/listTools")
    assert request.method == "mcp/dialects/000/listTools"
    answer = connection.encoded(failure(request.id, MethodNotFound("method not found: other")))
    assert answer["error"]["message"] == "method not found: mcp/dialects/000/listTools"


def test_meta_of_the_peer_is_merged_but_does_not_change_the_envelope():
    sent = {"_meta": {"progressToken": 5, "com.example/x": 1}}
    assert Connection().request("mcp/listTools", sent).params["_meta"] == ENVELOPE | sent["_meta"]
    sent = {"_meta": {PROTOCOL_VERSION: "2025-11-25", CLIENT_CAPABILITIES: {"elicitation": {}}}}
    assert Connection().request("mcp/listTools", sent).params["_meta"] == ENVELOPE


def test_initialize_completes_the_handshake():
    first, second = Connection().send("mcp/initialize", {"transports": ["stdio"], "authentication": {}}, id=1)
    assert isinstance(first, Request)
    assert first.method == "initialize"
    assert second == Notification("notifications/initialized")


def test_initialize_in_a_post_becomes_server_discover():
    message = Codec(dialects=True).decode_body(text("mcp/initialize", {}, id=1))
    assert message == Request(1, "server/discover", {"_meta": ENVELOPE})


def test_empty_params_have_several_forms_and_invalid_params_are_refused():
    for params in (None, [], {}, [{}]):
        assert Connection().request("mcp/listTools", params).params == {"_meta": ENVELOPE}
    for params in ("x", 1, ["a"], ["a", "b", "c"], [[]]):
        assert Connection().refused("mcp/listTools", params, id=1)["error"]["code"] == -32602


def test_params_may_be_positional():
    connection = Connection()
    assert connection.request("mcp/tool/execute", ["a/b", {"x": 1}]).params["inputs"] == {"x": 1}
    assert connection.request("mcp/resource/read", ["a://b"], id=2).params == {
        "resourceId": "a://b",
        "_meta": ENVELOPE,
    }


# Ids


def test_answers_have_the_id_of_their_request():
    for id_ in (None, "x", 7, "7"):
        connection = Connection()
        request = connection.request("mcp/tools/list", id=id_)
        answer = connection.encoded(Response(request.id, {"tools": []}))
        assert answer == {"jsonrpc": "2.0", "id": id_, "result": {"tools": []}}
        request = connection.request("mcp/listTools", id=id_)
        answer = connection.encoded(failure(request.id, InvalidRequest("no", data=[1])))
        assert answer == {"jsonrpc": "2.0", "id": id_, "error": {"code": -32600, "message": "no", "data": [1]}}
    for id_ in (True, 1.5, [], {}):  # answers to invalid ids have the id null
        answer = Connection().refused("mcp/listTools", id=id_)
        assert (answer["id"], answer["error"]["code"]) == (None, -32600)


@pytest.mark.parametrize("id_", [None, 7])
def test_requests_with_an_id_in_use_are_refused(id_):
    connection = Connection()
    request = connection.request("mcp/listTools", id=id_)
    answer = connection.refused("mcp/listTools", id=id_)
    assert answer["id"] == id_
    assert "in use" in answer["error"]["message"]
    assert connection.encoded(Response(request.id, {"value": []}))["result"] == []
    assert connection.request("mcp/listTools", id=id_)  # the answer frees the id


@pytest.mark.parametrize("id_", [None, 7])
def test_cancelled_requests_get_no_answer_and_free_their_id(id_):
    connection = Connection()
    request = connection.request("mcp/listTools", id=id_)
    cancelled = Notification("notifications/cancelled", {"requestId": request.id})
    assert connection.send("mcp/notifications/cancelled", {"requestId": id_}) == [cancelled]
    assert connection.codec.encode(Response(request.id, {"value": []})) == b""
    assert connection.request("mcp/listTools", id=id_)


def test_cancellations_of_unknown_ids_name_no_request():
    connection = Connection()
    connection.request("mcp/listTools", id=7)
    nothing = [Notification("notifications/cancelled", {"requestId": None})]
    for id_ in (8, True, [], {}, "1"):
        assert connection.send("mcp/notifications/cancelled", {"requestId": id_}) == nothing


def test_changes_name_the_id_of_their_listen_request():
    connection = Connection()
    request = connection.request("mcp/subscriptions/listen", {"notifications": {}}, id="mine")
    meta = {"_meta": {SUBSCRIPTION_ID: request.id}}
    answer = connection.encoded(Notification("notifications/tools/list_changed", meta))
    assert answer["method"] == "mcp/notifications/tools/list_changed"
    assert answer["params"]["_meta"] == {SUBSCRIPTION_ID: "mine"}
    assert connection.encoded(Response(request.id, meta))["result"]["_meta"] == {SUBSCRIPTION_ID: "mine"}
    assert connection.codec.encode(Notification("notifications/cancelled", {"requestId": request.id})) == b""


def test_results_without_a_form_in_the_dialect_are_internal_errors(caplog):
    connection = Connection()
    request = connection.request("mcp/listTools", id=None)
    answer = connection.encoded(Response(request.id, {"resultType": "input_required"}))
    assert answer == {"jsonrpc": "2.0", "id": None, "error": {"code": -32603, "message": "internal error"}}
    assert "could not be written in the dialect of document 000" in caplog.text
    assert connection.request("mcp/listTools", id=None)


# One dialect in a connection


def test_methods_of_other_dialects_are_refused():
    connection = Connection()
    connection.request("mcp/listTools", id=1)
    for method in ("tools/list", "initialize", "call_tool"):
        answer = connection.refused(method, {}, id=2)
        assert (answer["id"], answer["error"]["code"]) == (2, -32601)
        assert "document 000" in answer["error"]["message"]
    assert connection.refused(5, {}, id=2)["error"]["code"] == -32600


def test_standard_connections_do_not_translate_methods_of_the_dialect():
    codec = Codec(dialects=True)
    assert codec.feed(text("ping", {}, id=1) + b"\n") == [Request(1, "ping", {})]
    assert codec.feed(text("mcp/listTools", {}, id=2) + b"\n") == [Request(2, "mcp/listTools", {})]
    assert codec.dialect is None
    assert Codec().feed(text("mcp/listTools", {}, id=1) + b"\n") == [Request(1, "mcp/listTools", {})]


def test_only_a_json_object_decides_the_dialect():
    codec = Codec(dialects=True)
    codec.feed(b'nonsense\n[]\n"x"\n')
    codec.feed(text("mcp/listTools", id=1) + b"\n")
    assert codec.dialect is not None
    assert codec.dialect.document == "000"


# Malformed messages


def test_malformed_messages_are_answered_with_an_error():
    connection = Connection()
    connection.request("mcp/listTools")
    codes = {b'{"id": 1, "method": "mcp/listTools"}': (1, -32600), b"{": (None, -32700)}
    codes |= dict.fromkeys((b"[]", b"[{}]", b"7"), (None, -32600))
    for line, under in codes.items():
        (message,) = connection.codec.feed(line + b"\n")
        assert isinstance(message, Malformed)
        answer = connection.encoded(message.failure)
        assert (answer["id"], answer["error"]["code"]) == under
    for value in ({"result": {}, "id": 1}, {"method": "x"}, {"method": "mcp/x", "params": "x"}):
        (message,) = connection.codec.feed(json.dumps({"jsonrpc": "2.0", **value}).encode() + b"\n")
        assert isinstance(message, Malformed)
        assert message.silent
    assert connection.encoded(Failure(None, -32600, "no"))["id"] is None


def test_refusals_of_lone_surrogates_have_the_id_of_the_request():
    connection = Connection()
    for id_ in (1, "x", None):
        answer = connection.refused("mcp/tool/execute", {"toolId": "\ud800", "inputs": {}}, id=id_)
        assert (answer["id"], answer["error"]["code"]) == (id_, -32602)
        assert answer["error"]["message"].startswith("params.toolId ")


def test_refusals_of_too_long_messages_have_their_id():
    connection = Connection()
    connection.codec = Codec(200, dialects=True)
    connection.request("mcp/listTools", id=1)
    answer = connection.refused("mcp/listTools", {"x": "y" * 500}, id="long")
    assert answer["id"] == "long"
    assert connection.request("mcp/listTools", id=2)


# Any JSON

JSON = st.sampled_from([None, True, 1.5, "", "x", [], [1, {}], {}, {"_meta": 5}, {"requestId": 1}, 2**70])
METHODS = ["mcp/listTools", "mcp/initialize", "mcp/ping", "mcp/tools/list", "mcp/notifications/cancelled", "ping"]
MESSAGES = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0") | JSON, "method": st.sampled_from(METHODS) | JSON},
    optional={"id": st.integers(0, 2) | JSON, "params": st.builds(dict, requestId=st.integers(0, 2)) | JSON},
)


@settings(max_examples=40)
@given(st.lists(MESSAGES, max_size=8))
def test_each_request_of_any_form_gets_one_answer_and_frees_its_id(values):
    codec = Codec(dialects=True)
    codec.feed(text("mcp/listTools", id="first") + b"\n")
    for value in values:
        answers = [
            codec.encode(answer)
            for answer in map(immediate_answer, codec.feed(json.dumps(value).encode() + b"\n"))
            if answer
        ]
        assert len(answers) == ("id" in value or not isinstance(value["method"], str))
        assert all(json.loads(one)["id"] == value.get("id") or json.loads(one)["id"] is None for one in answers)
    forgotten = [codec.feed(text("mcp/listTools", id=id_) + b"\n")[0] for id_ in (0, 1, 2, None, "", "x", "first")]
    assert [type(message) for message in forgotten] == [Request] * 6 + [Malformed]


def immediate_answer(message: Message) -> Message | None:
    """Returns the error that a server answers to a message, None where it answers nothing."""
    match message:
        case Request():
            return failure(message.id, InvalidRequest("no"))
        case Malformed(answer, silent=False):
            return answer
    return None
