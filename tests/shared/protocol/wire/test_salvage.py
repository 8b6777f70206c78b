"""Messages that can't be taken as they are: where the fault stands, and the id to answer under."""

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


def told(data: bytes) -> tuple[object, int, str]:
    """The id, the code and the words of a refusal."""
    message = decode(data)
    assert isinstance(message, Malformed)
    return message.failure.id, message.failure.code, message.failure.message


def test_params_that_cannot_be_represented_are_refused_with_the_place():
    words = {
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
    for params, said in words.items():
        *under, message = told(request(params))
        assert (under, message.endswith(said)) == ([7, -32602], True), params
    assert len(told(request('{"%s": "\\ud800"}' % ("x" * 10_000)))[2]) < 400  # a long place is cut


def test_whatever_else_is_wrong_is_answered_under_the_id():
    codes = {
        request('{"a": "tab\there"}'): -32700,
        request('{"a": %s}' % ("9" * 5_000)): -32700,
        request('{"a": %s}' % ("[" * 50_000 + "]" * 50_000)): -32700,
        rb'{"jsonrpc": "2.0", "id": 7, "method": "\ud800"}': -32600,
        rb'{"jsonrpc": "2.0", "id": 7, "method": "m", "more": "\ud800"}': -32600,
        rb'{"jsonrpc": "\ud800", "id": 7, "method": "m"}': -32600,
        rb'{"jsonrpc": "2.0", "id": 7, "method": "m", "params": "\ud800"}': -32602,
    }
    assert {data: told(data)[:2] for data in codes} == {data: (7, code) for data, code in codes.items()}
    for id_ in (r'"\ud800"', "NaN", "9" * 5_000):
        assert told(request("{}", id_))[:2] == (None, -32700)


def test_a_notification_is_taken_with_another_character():
    data = (
        rb'{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7, "reason": "\ud83d!"}}'
    )
    assert decode(data) == Notification("notifications/cancelled", {"requestId": 7, "reason": "\ufffd!"})


def test_a_notification_with_what_is_no_text_is_not_answered():
    message = decode(b'{"jsonrpc": "2.0", "method": "m", "params": {"a": NaN}}')
    assert isinstance(message, Malformed)
    assert message.silent


def test_an_answer_becomes_an_error_so_that_nobody_waits_for_it():
    message = decode(rb'{"jsonrpc": "2.0", "id": 7, "result": {"content": {"name": "\ud800"}}}')
    assert message == Failure(7, -32600, f"result.content.name {HALF}")
    message = decode(rb'{"jsonrpc": "2.0", "id": 7, "error": {"code": -5, "message": "\ud800"}}')
    assert message == Failure(7, -5, "\ufffd")


def test_one_message_of_a_batch_costs_no_other():
    message = decode(rb'[%b, {"jsonrpc": "2.0", "id": 8, "method": "m"}]' % request(r'{"a": "\ud800"}'))
    assert isinstance(message, Batch)
    refused, taken = message.messages
    assert isinstance(refused, Malformed)
    assert (refused.failure.id, refused.failure.code) == (7, -32602)
    assert taken == Request(8, "m")


@settings(max_examples=60)
@given(st.text(alphabet=st.characters()))  # surrogates among them
def test_any_text_that_json_spells_is_taken_or_answered_under_the_id(text):
    data = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "m", "params": {"a": text}}).encode()
    if is_text(text):
        assert decode(data) == Request(7, "m", {"a": text})
    else:
        assert told(data)[:2] == (7, -32602)


# Looking for the fault


def test_what_has_no_fault_has_no_place():
    assert find_fault({"a": ["é", 1, None, 1.5, {"b": "\U0001f600"}]}) is None


def test_a_fault_is_looked_for_among_so_many_values_only():
    assert find_fault({"a": [0] * MAX_VALUES, "b": "\ud800"}) is not None
    assert find_fault({"a": [*([0] * MAX_VALUES), "\ud800"]}) is None


@pytest.mark.parametrize(("levels", "is_too_deep"), [(MAX_DEPTH, False), (MAX_DEPTH + 1, True)])
def test_as_many_levels_are_a_fault_as_the_parser_refuses(levels, is_too_deep):
    text = "[" * (levels - 1) + "]" * (levels - 1)
    data = request('"\\ud800"').replace(b'"\\ud800"', text.encode())
    assert (find_fault(read_leniently(data)) is not None) is is_too_deep
    message = decode(data)
    assert isinstance(message, Malformed)
    assert message.failure.message == '"params" must be an object'


# Without reading it

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
"""The ends of messages, before and after much, and the ids of those."""


def test_the_id_may_stand_at_either_end():
    assert [(head, tail, read_request_id(head + MUCH, MUCH + tail)) for head, tail, _ in REQUESTS] == REQUESTS
    assert [(head, tail, read_answer_id(head + MUCH, MUCH + tail)) for head, tail, _ in ANSWERS] == ANSWERS


def test_an_answer_that_is_no_json_is_known_by_its_id():
    for rest in (b"tru", b'{"a":' * 10_000, b'"\xff'):
        read = decode(b'{"jsonrpc":"2.0","id":7,"result":{"a":' + rest)
        assert isinstance(read, Malformed)
        assert (read.failure.id, read.silent, read.is_call) == (7, True, False)


def test_looking_at_the_ends_takes_no_time_worth_mentioning():
    for hostile in (
        b',"id":1' * EDGE_BYTES,
        b'{"id":"a",' + b'"id":1 ,' * EDGE_BYTES,
        b" " * EDGE_BYTES,
        b',"id":' + b"1" * EDGE_BYTES,
    ):
        assert read_request_id(hostile[:EDGE_BYTES], hostile[-EDGE_BYTES:]) is None
