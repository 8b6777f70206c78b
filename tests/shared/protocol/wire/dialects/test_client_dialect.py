"""Requests of a client in a dialect, and malformed answers to them."""

import json
from typing import Any

import pytest

from shared.protocol.types.base import CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION
from shared.protocol.wire.codec import Codec
from shared.protocol.wire.dialects.client_dialect import MAX_SENT
from shared.protocol.wire.jsonrpc import Failure, Malformed, Message, Notification, Request, Response

Json = dict[str, Any]

ENVELOPE: Json = {
    PROTOCOL_VERSION: "2026-07-28",
    CLIENT_CAPABILITIES: {},
    CLIENT_INFO: {"name": "test", "version": "1"},
}


def client(document: str) -> Codec:
    """Makes the codec of a client that speaks the dialect of the document."""
    return Codec(is_client=True, line_end=b"", dialect=document)


def written(codec: Codec, method: str, params: Json, **meta: Any) -> Json:
    """Returns the form in the dialect of a request of the specification, without `jsonrpc` and `id`."""
    sent: Json = json.loads(codec.encode(Request(1, method, {**params, "_meta": {**ENVELOPE, **meta}})))
    assert (sent.pop("jsonrpc"), sent.pop("id")) == ("2.0", 1)
    return sent


def read(codec: Codec, value: Any) -> Message:
    """Returns the message in a body from the server."""
    return codec.decode_body(json.dumps(value).encode())


def answered(document: str, method: str, params: Json, result: Any) -> Json:
    """Returns the result in the form of the specification when a server of the document answers `result`."""
    codec = client(document)
    written(codec, method, params)
    answer = read(codec, {"id": 1, "result": result})
    assert isinstance(answer, Response), answer
    assert answer.id == 1
    return answer.result


def test_errors_become_failures_of_their_request() -> None:
    codec = client("002")
    written(codec, "tools/call", {"name": "add"})
    error = {"code": 4001, "message": "no", "data": [1]}
    assert read(codec, {"id": 1, "error": error}) == Failure(1, 4001, "no", [1])
    written(codec, "tools/call", {"name": "add"})
    failed = read(codec, {"id": 1, "error": "no"})
    assert isinstance(failed, Failure)
    assert (failed.id, failed.code) == (1, -32603)


def test_answers_with_an_id_of_another_type_match_no_request() -> None:
    codec = client("002")
    written(codec, "tools/call", {"name": "add"})
    assert isinstance(read(codec, {"id": True, "result": {"content": []}}), Malformed)
    assert isinstance(read(codec, {"id": 1, "result": {"content": []}}), Response)


@pytest.mark.parametrize("result", [7, None, [], {"content": 1}, {"content": [[]]}, {"content": [{}]}])
def test_results_of_invalid_form_are_malformed(result: Any) -> None:
    codec = client("002")
    written(codec, "resources/read", {"uri": "a:b"})
    answer = read(codec, {"id": 1, "result": result})
    assert isinstance(answer, Malformed)
    assert (answer.failure.id, answer.silent) == (1, True)


@pytest.mark.parametrize("value", [{"id": 2, "result": {}}, {"id": [], "result": {}}, {}, {"result": {}}, [], 7])
def test_answers_without_a_request_are_malformed(value: Any) -> None:
    answer = read(client("000"), value)
    assert isinstance(answer, Malformed)
    assert answer.silent


def test_second_answers_to_a_request_are_malformed() -> None:
    codec = client("000")
    written(codec, "tools/list", {})
    assert isinstance(read(codec, {"id": 1, "result": []}), Response)
    assert isinstance(read(codec, {"id": 1, "result": []}), Malformed)


def test_the_oldest_unanswered_requests_are_evicted() -> None:
    codec = client("000")
    for number in range(MAX_SENT + 1):
        codec.encode(Request(number, "tools/list", {}))
    assert isinstance(read(codec, {"id": 0, "result": []}), Malformed)
    assert isinstance(read(codec, {"id": MAX_SENT, "result": []}), Response)


def test_answers_to_cancelled_requests_are_malformed() -> None:
    codec = client("000")
    written(codec, "tools/list", {})
    given_up = Notification("notifications/cancelled", {"requestId": 1})
    assert json.loads(codec.encode(given_up))["method"] == "mcp/notifications/cancelled"
    assert isinstance(read(codec, {"id": 1, "result": []}), Malformed)


def test_unknown_dialects_raise_an_error() -> None:
    with pytest.raises(ValueError, match="the dialect must be 000 or 002, not '001'"):
        client("001")
