"""Invalid messages: the place of the fault, and the id of the answer."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.protocol.wire.codec import decode
from shared.protocol.wire.jsonrpc import Batch, Failure, Malformed, Notification, Request
from shared.protocol.wire.salvage import (
    EDGE_BYTES,
    MAX_DEPTH,
    MAX_VALUES,
    find_fault,
    is_text,
    read_answer_id,
    read_leniently,
    read_request_id,
)

HALF = "is not valid Unicode: it has a lone surrogate, or bytes that are not UTF-8"
NAN = "is NaN or Infinity, which JSON does not have"


def request(params: str, id: str = "7") -> bytes:
    return b'{"jsonrpc": "2.0", "id": %s, "method": "m", "params": %s}' % (id.encode(), params.encode("latin-1"))


def refusal_of(data: bytes) -> tuple[object, int, str]:
    """Returns the id, code and message of a refusal."""
    message = decode(data)
    assert isinstance(message, Malformed)
    return message.failure.id, message.failure.code, message.failure.message


def test_refusals_of_invalid_text_in_params_name_the_path():
    endings = {
        r'{"a": "\ud800"}': f"params.a {HALF}",
        r'{"a": "x\udc00"}': f"params.a {HALF}",
        r'{"a": "\ud83dA"}': f"params.a {HALF}",
        r'{"a": {"b": [0, {"c": "\ud83d"}]}}': f"params.a.b.1.c {HALF}",
        r'{"a\ud800": 1}': f"params.a\ufffd {HALF}",
        '{"a": "\xff"}': f"params.a {HALF}",
        '{"a": "\xed\xa0\x80"}': f"params.a {HALF}",
        '{"a": NaN}': f"params.a {NAN}",
        '{"a": [-Infinity]}': f"params.a.0 {NAN}",
        r'{"a": "\ud800", "b": NaN}': f"params.b {NAN}",
        '{"a": %s}' % ("[" * 250 + "]" * 250): "is nested more than 200 levels deep",
    }
    for params, ending in endings.items():
        *under, message = refusal_of(request(params))
        assert (under, message.endswith(ending)) == ([7, -32602], True), params
    assert len(refusal_of(request('{"%s": "\\ud800"}' % ("x" * 10_000)))[2]) < 400  # a long path is cut


def test_refusals_of_other_invalid_messages_have_the_id_of_the_request():
    codes = {
        request('{"a": "tab\there"}'): -32700,
        request('{"a": %s}' % ("9" * 5_000)): -32700,
        request('{"a": %s}' % ("[" * 50_000 + "]" * 50_000)): -32700,
        rb'{"jsonrpc": "2.0", "id": 7, "method": "\ud800"}': -32600,
        rb'{"jsonrpc": "2.0", "id": 7, "method": "m", "more": "\ud800"}': -32600,
        rb'{"jsonrpc": "\ud800", "id": 7, "method": "m"}': -32600,
        rb'{"jsonrpc": "2.0", "id": 7, "method": "m", "params": "\ud800"}': -32602,
    }
    assert {data: refusal_of(data)[:2] for data in codes} == {data: (7, code) for data, code in codes.items()}
    assert all(decode(data).is_call for data, code in codes.items() if code != -32700)
    for id_ in (r'"\ud800"', "NaN", "9" * 5_000):
        assert refusal_of(request("{}", id_))[:2] == (None, -32700)


def test_lone_surrogates_in_notifications_are_replaced():
    data = (
        rb'{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7, "reason": "\ud83d!"}}'
    )
    assert decode(data) == Notification("notifications/cancelled", {"requestId": 7, "reason": "\ufffd!"})


def test_notifications_with_nan_get_no_answer():
    message = decode(b'{"jsonrpc": "2.0", "method": "m", "params": {"a": NaN}}')
    assert isinstance(message, Malformed)
    assert message.silent


def test_answers_with_lone_surrogates_become_failures():
    message = decode(rb'{"jsonrpc": "2.0", "id": 7, "result": {"content": {"name": "\ud800"}}}')
    assert message == Failure(7, -32600, f"result.content.name {HALF}")
    message = decode(rb'{"jsonrpc": "2.0", "id": 7, "error": {"code": -5, "message": "\ud800"}}')
    assert message == Failure(7, -5, "\ufffd")


def test_an_invalid_message_of_a_batch_does_not_affect_the_others():
    message = decode(rb'[%b, {"jsonrpc": "2.0", "id": 8, "method": "m"}]' % request(r'{"a": "\ud800"}'))
    assert isinstance(message, Batch)
    refused, taken = message.messages
    assert isinstance(refused, Malformed)
    assert (refused.failure.id, refused.failure.code) == (7, -32602)
    assert taken == Request(8, "m")


@settings(max_examples=60)
@given(st.text(alphabet=st.characters()))  # including surrogates
def test_any_json_text_is_accepted_or_refused_with_the_id(text):
    data = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "m", "params": {"a": text}}).encode()
    if is_text(text):
        assert decode(data) == Request(7, "m", {"a": text})
    else:
        assert refusal_of(data)[:2] == (7, -32602)


# Search for the fault


def test_valid_values_have_no_fault():
    assert find_fault({"a": ["é", 1, None, 1.5, {"b": "\U0001f600"}]}) is None


def test_find_fault_searches_a_limited_number_of_values():
    assert find_fault({"a": [0] * MAX_VALUES, "b": "\ud800"}) is not None
    assert find_fault({"a": [*([0] * MAX_VALUES), "\ud800"]}) is None


@pytest.mark.parametrize(("levels", "is_too_deep"), [(MAX_DEPTH, False), (MAX_DEPTH + 1, True)])
def test_find_fault_and_the_parser_have_the_same_depth_limit(levels, is_too_deep):
    text = "[" * (levels - 1) + "]" * (levels - 1)
    data = request('"\\ud800"').replace(b'"\\ud800"', text.encode())
    assert (find_fault(read_leniently(data)) is not None) is is_too_deep
    message = decode(data)
    assert isinstance(message, Malformed)
    assert message.failure.message == '"params" must be an object'


# Ids of messages that are not parsed

MUCH = b"x" * 100


REQUESTS = [
    (b'{"jsonrpc":"2.0","id":7,"method":"m","params":{"a":"', b'"}}', 7),
    (b'{"method":"m","params":{"a":"', b'"},"jsonrpc":"2.0","id":7}', 7),
    (b'{"jsonrpc":"2.0","id":"a-b","params":{', b'"},"method":"m"}\r', "a-b"),
    (b' { "jsonrpc" : "2.0" , "id" : -7 , "method" : "m" , ', b"", -7),
    (b'{"jsonrpc":"2.0","id":7,"result":{', b"}}", None),
    (b'{"result":{', b'},"jsonrpc":"2.0","id":7}', None),
    (b'{"method":"m","params":{"a":{"id":7},"b":"', b'"}}', None),
    (b'{"method":"m","params":{"a":"', b'","id":7}}', None),
    (b'{"method":"m","params":{"a":"', rb',\"id\":7}"}}', None),
    (b'{"method":"m","id":"\xff",', b"", None),
    (b'{"method":"m","id":1.5,', b"", None),
    (b'[{"jsonrpc":"2.0","id":7,"method":"m","params":{', b"", None),
    (b"", b"", None),
]
ANSWERS = [
    (b'{"jsonrpc":"2.0","id":7,"result":{', b"}}", 7),
    (b' { "id" : "seven" , "error" : {', b"", "seven"),
    (b'{"result":{', b'},"jsonrpc":"2.0","id":7}', 7),
    (b'{"result":{', b"}}", None),
    (b'{"jsonrpc":"2.0","id":7,"result":{', b',"id":8}', 7),
    (b'{"jsonrpc":"2.0","id":7,"method":"m","params":{', b"}}", None),
    (b'{"jsonrpc":"2.0","id":7,"params":{', b'},"method":"m"}', None),
    (b'{"result":{', b'},"method":"m","id":7}', None),
    (b'{"jsonrpc":"2.0","id":7.5,"result":{', b"}}", None),
    (b'[{"jsonrpc":"2.0","id":7,"result":{', b"", None),
]
"""Beginning and end of long messages, and their ids."""


def test_ids_are_read_from_either_end_of_a_message():
    assert [(head, tail, read_request_id(head + MUCH, MUCH + tail)) for head, tail, _ in REQUESTS] == REQUESTS
    assert [(head, tail, read_answer_id(head + MUCH, MUCH + tail)) for head, tail, _ in ANSWERS] == ANSWERS


def test_answers_of_invalid_json_have_their_id():
    for rest in (b"tru", b'{"a":' * 10_000, b'"\xff'):
        read = decode(b'{"jsonrpc":"2.0","id":7,"result":{"a":' + rest)
        assert isinstance(read, Malformed)
        assert (read.failure.id, read.silent, read.is_call) == (7, True, False)


def test_hostile_ends_of_a_message_are_read_in_linear_time():
    for hostile in (
        b',"id":1' * EDGE_BYTES,
        b'{"id":"a",' + b'"id":1 ,' * EDGE_BYTES,
        b" " * EDGE_BYTES,
        b',"id":' + b"1" * EDGE_BYTES,
    ):
        assert read_request_id(hostile[:EDGE_BYTES], hostile[-EDGE_BYTES:]) is None
