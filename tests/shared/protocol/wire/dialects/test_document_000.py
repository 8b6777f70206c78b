"""Document 000: what its messages mean to the core, and what its peer is told."""

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


class Talk:
    """One connection of a peer that speaks the dialect."""

    def __init__(self) -> None:
        self.codec = Codec(dialects=True)

    def says(self, method: str, params: Any = None, **more: Any) -> list[Message]:
        return self.codec.feed(text(method, params, **more) + b"\n")

    def request(self, method: str, params: Any = None, *, id: Any = 1) -> Request:
        (request,) = self.says(method, params, id=id)
        assert isinstance(request, Request)
        return request

    def refused(self, method: str, params: Any = None, **more: Any) -> Json:
        (message,) = self.says(method, params, **more)
        assert isinstance(message, Malformed)
        assert not message.silent
        return self.hears(message.failure)

    def hears(self, message: Message) -> Json:
        return json.loads(self.codec.encode(message))


# What a request becomes


def test_its_own_method_is_a_request_without_a_handshake():
    request = Talk().request("mcp/tool/execute", {"toolId": "a/b", "inputs": {}})
    assert request.method == "dialects/000/tool/execute"
    assert request.params == {"toolId": "a/b", "inputs": {}, "_meta": ENVELOPE}


def test_a_method_of_the_specification_keeps_its_params():
    assert Talk().request("mcp/tools/list", {"cursor": "x"}).params == {"cursor": "x", "_meta": ENVELOPE}
    assert Talk().request("mcp/tools/list").method == "tools/list"


def test_what_lives_in_a_handshake_needs_one_and_has_no_envelope():
    talk = Talk()
    for method in ("resources/subscribe", "logging/setLevel"):
        told = talk.refused(f"mcp/{method}", {}, id=1)
        assert told["error"] == {"code": -32600, "message": 'send "mcp/initialize" first'}
    talk.says("mcp/initialize", id=0)
    for id_, method in enumerate(("ping", "resources/subscribe", "logging/setLevel"), 1):
        request = talk.request(f"mcp/{method}", {"uri": "x"}, id=id_)
        assert (request.method, request.params) == (method, {"uri": "x"})


def test_a_level_of_logging_holds_for_the_calls_that_follow():
    talk = Talk()
    talk.says("mcp/initialize", id=0)
    talk.says("mcp/logging/setLevel", {"level": "loud"}, id=1)
    assert talk.request("mcp/listTools", id=2).params["_meta"] == ENVELOPE
    talk.says("mcp/logging/setLevel", {"level": "info"}, id=3)
    assert talk.request("mcp/listTools", id=4).params["_meta"] == {**ENVELOPE, LOG_LEVEL: "info"}
    own = {"_meta": {LOG_LEVEL: "error"}}
    assert talk.request("mcp/listTools", own, id=5).params["_meta"] == {**ENVELOPE, LOG_LEVEL: "error"}


def test_what_handles_a_dialect_has_no_names_in_it():
    talk = Talk()
    request = talk.request("mcp/dialects/000/listTools")
    assert request.method == "mcp/dialects/000/listTools"
    told = talk.hears(failure(request.id, MethodNotFound("method not found: other")))
    assert told["error"]["message"] == "method not found: mcp/dialects/000/listTools"


def test_what_the_peer_says_in_its_meta_counts_but_what_the_dialect_has_no_words_for():
    sent = {"_meta": {"progressToken": 5, "com.example/x": 1}}
    assert Talk().request("mcp/listTools", sent).params["_meta"] == ENVELOPE | sent["_meta"]
    sent = {"_meta": {PROTOCOL_VERSION: "2025-11-25", CLIENT_CAPABILITIES: {"elicitation": {}}}}
    assert Talk().request("mcp/listTools", sent).params["_meta"] == ENVELOPE


def test_initialize_is_the_whole_handshake():
    first, second = Talk().says("mcp/initialize", {"transports": ["stdio"], "authentication": {}}, id=1)
    assert isinstance(first, Request)
    assert first.method == "initialize"
    assert second == Notification("notifications/initialized")


def test_a_post_that_initializes_asks_what_the_server_is():
    message = Codec(dialects=True).decode_body(text("mcp/initialize", {}, id=1))
    assert message == Request(1, "server/discover", {"_meta": ENVELOPE})


def test_no_params_have_several_forms_and_others_are_refused():
    for params in (None, [], {}, [{}]):
        assert Talk().request("mcp/listTools", params).params == {"_meta": ENVELOPE}
    for params in ("x", 1, ["a"], ["a", "b", "c"], [[]]):
        assert Talk().refused("mcp/listTools", params, id=1)["error"]["code"] == -32602


def test_params_may_be_in_the_order_of_the_document():
    talk = Talk()
    assert talk.request("mcp/tool/execute", ["a/b", {"x": 1}]).params["inputs"] == {"x": 1}
    assert talk.request("mcp/resource/read", ["a://b"], id=2).params == {"resourceId": "a://b", "_meta": ENVELOPE}


# Ids


def test_an_answer_has_the_id_of_its_request():
    for id_ in (None, "x", 7, "7"):
        talk = Talk()
        request = talk.request("mcp/tools/list", id=id_)
        told = talk.hears(Response(request.id, {"tools": []}))
        assert told == {"jsonrpc": "2.0", "id": id_, "result": {"tools": []}}
        request = talk.request("mcp/listTools", id=id_)
        told = talk.hears(failure(request.id, InvalidRequest("no", data=[1])))
        assert told == {"jsonrpc": "2.0", "id": id_, "error": {"code": -32600, "message": "no", "data": [1]}}
    for id_ in (True, 1.5, [], {}):  # what is no id is answered under null
        told = Talk().refused("mcp/listTools", id=id_)
        assert (told["id"], told["error"]["code"]) == (None, -32600)


@pytest.mark.parametrize("id_", [None, 7])
def test_an_id_in_use_is_refused_and_its_first_request_goes_on(id_):
    talk = Talk()
    request = talk.request("mcp/listTools", id=id_)
    told = talk.refused("mcp/listTools", id=id_)
    assert told["id"] == id_
    assert "in use" in told["error"]["message"]
    assert talk.hears(Response(request.id, {"value": []}))["result"] == []
    assert talk.request("mcp/listTools", id=id_)  # it is free once it is answered


@pytest.mark.parametrize("id_", [None, 7])
def test_a_cancelled_request_is_forgotten(id_):
    talk = Talk()
    request = talk.request("mcp/listTools", id=id_)
    cancelled = Notification("notifications/cancelled", {"requestId": request.id})
    assert talk.says("mcp/notifications/cancelled", {"requestId": id_}) == [cancelled]
    assert talk.codec.encode(Response(request.id, {"value": []})) == b""
    assert talk.request("mcp/listTools", id=id_)


def test_cancelling_what_is_not_there_reaches_nobody():
    talk = Talk()
    talk.request("mcp/listTools", id=7)
    nothing = [Notification("notifications/cancelled", {"requestId": None})]
    for id_ in (8, True, [], {}, "1"):
        assert talk.says("mcp/notifications/cancelled", {"requestId": id_}) == nothing


def test_a_stream_of_changes_is_known_by_the_id_of_its_request():
    talk = Talk()
    request = talk.request("mcp/subscriptions/listen", {"notifications": {}}, id="mine")
    meta = {"_meta": {SUBSCRIPTION_ID: request.id}}
    told = talk.hears(Notification("notifications/tools/list_changed", meta))
    assert told["method"] == "mcp/notifications/tools/list_changed"
    assert told["params"]["_meta"] == {SUBSCRIPTION_ID: "mine"}
    assert talk.hears(Response(request.id, meta))["result"]["_meta"] == {SUBSCRIPTION_ID: "mine"}
    assert talk.codec.encode(Notification("notifications/cancelled", {"requestId": request.id})) == b""


def test_a_result_that_can_not_be_written_is_an_internal_error(caplog):
    talk = Talk()
    request = talk.request("mcp/listTools", id=None)
    told = talk.hears(Response(request.id, {"resultType": "input_required"}))
    assert told == {"jsonrpc": "2.0", "id": None, "error": {"code": -32603, "message": "internal error"}}
    assert "could not be written in the dialect of document 000" in caplog.text
    assert talk.request("mcp/listTools", id=None)


# One dialect in a connection


def test_another_dialect_is_refused():
    talk = Talk()
    talk.request("mcp/listTools", id=1)
    for method in ("tools/list", "initialize", "call_tool"):
        told = talk.refused(method, {}, id=2)
        assert (told["id"], told["error"]["code"]) == (2, -32601)
        assert "document 000" in told["error"]["message"]
    assert talk.refused(5, {}, id=2)["error"]["code"] == -32600


def test_once_standard_or_where_dialects_are_off_its_methods_are_as_any_other():
    codec = Codec(dialects=True)
    assert codec.feed(text("ping", {}, id=1) + b"\n") == [Request(1, "ping", {})]
    assert codec.feed(text("mcp/listTools", {}, id=2) + b"\n") == [Request(2, "mcp/listTools", {})]
    assert codec.dialect is None
    assert Codec().feed(text("mcp/listTools", {}, id=1) + b"\n") == [Request(1, "mcp/listTools", {})]


def test_only_an_object_settles_what_is_spoken():
    codec = Codec(dialects=True)
    codec.feed(b'nonsense\n[]\n"x"\n')
    codec.feed(text("mcp/listTools", id=1) + b"\n")
    assert codec.dialect is not None
    assert codec.dialect.name == "000"


# What is no message


def test_what_is_no_message_is_answered_where_that_is_wanted():
    talk = Talk()
    talk.request("mcp/listTools")
    codes = {b'{"id": 1, "method": "mcp/listTools"}': (1, -32600), b"{": (None, -32700)}
    codes |= dict.fromkeys((b"[]", b"[{}]", b"7"), (None, -32600))
    for line, under in codes.items():
        (message,) = talk.codec.feed(line + b"\n")
        assert isinstance(message, Malformed)
        told = talk.hears(message.failure)
        assert (told["id"], told["error"]["code"]) == under
    for value in ({"result": {}, "id": 1}, {"method": "x"}, {"method": "mcp/x", "params": "x"}):
        (message,) = talk.codec.feed(json.dumps({"jsonrpc": "2.0", **value}).encode() + b"\n")
        assert isinstance(message, Malformed)
        assert message.silent
    assert talk.hears(Failure(None, -32600, "no"))["id"] is None


def test_half_a_surrogate_pair_is_answered_under_the_id_of_its_request():
    talk = Talk()
    for id_ in (1, "x", None):
        told = talk.refused("mcp/tool/execute", {"toolId": "\ud800", "inputs": {}}, id=id_)
        assert (told["id"], told["error"]["code"]) == (id_, -32602)
        assert told["error"]["message"].startswith("params.toolId ")


def test_a_long_message_is_refused_under_its_id():
    talk = Talk()
    talk.codec = Codec(200, dialects=True)
    talk.request("mcp/listTools", id=1)
    told = talk.refused("mcp/listTools", {"x": "y" * 500}, id="long")
    assert told["id"] == "long"
    assert talk.request("mcp/listTools", id=2)


# Any JSON

JSON = st.sampled_from([None, True, 1.5, "", "x", [], [1, {}], {}, {"_meta": 5}, {"requestId": 1}, 2**70])
METHODS = ["mcp/listTools", "mcp/initialize", "mcp/ping", "mcp/tools/list", "mcp/notifications/cancelled", "ping"]
MESSAGES = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0") | JSON, "method": st.sampled_from(METHODS) | JSON},
    optional={"id": st.integers(0, 2) | JSON, "params": st.builds(dict, requestId=st.integers(0, 2)) | JSON},
)


@settings(max_examples=40)
@given(st.lists(MESSAGES, max_size=8))
def test_whatever_comes_is_answered_once_and_forgotten(values):
    codec = Codec(dialects=True)
    codec.feed(text("mcp/listTools", id="first") + b"\n")
    for value in values:
        told = [codec.encode(answer) for answer in map(due, codec.feed(json.dumps(value).encode() + b"\n")) if answer]
        assert len(told) == ("id" in value or not isinstance(value["method"], str))
        assert all(json.loads(one)["id"] == value.get("id") or json.loads(one)["id"] is None for one in told)
    forgotten = [codec.feed(text("mcp/listTools", id=id_) + b"\n")[0] for id_ in (0, 1, 2, None, "", "x", "first")]
    assert [type(message) for message in forgotten] == [Request] * 6 + [Malformed]


def due(message: Message) -> Message | None:
    """What a server would answer at once."""
    match message:
        case Request():
            return failure(message.id, InvalidRequest("no"))
        case Malformed(answer, silent=False):
            return answer
    return None
