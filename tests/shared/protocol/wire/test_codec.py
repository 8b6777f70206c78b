"""Decoding of bytes in pieces of any size, and encoding of messages as JSON."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.errors import InternalError, InvalidParams, InvalidRequest, ParseError
from shared.protocol.wire import codec
from shared.protocol.wire.codec import MAX_MESSAGE, Codec, decode, encode
from shared.protocol.wire.jsonrpc import (
    Batch,
    Failure,
    Malformed,
    Message,
    Notification,
    Prepared,
    Request,
    Response,
    failure,
)
from shared.steps import complete
from tests.steps import counted

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def fault(text: str | bytes) -> Malformed:
    message = decode(text.encode() if isinstance(text, str) else text)
    assert isinstance(message, Malformed)
    return message


def test_each_kind_of_message_is_read():
    read = {
        b'"id": "a", "method": "m", "params": {"x": [1]}': Request("a", "m", {"x": [1]}),
        b'"id": 1, "method": "m"': Request(1, "m", {}),
        b'"method": "m"': Notification("m"),
        b'"method": "a", "method": "b"': Notification("b"),  # the last of equal keys applies
        b'"id": 0, "result": {}': Response(0, {}),
        b'"id": 1, "error": {"code": -1, "message": "no", "data": [1]}': Failure(1, -1, "no", [1]),
        b'"error": {"code": -1, "message": "no"}': Failure(None, -1, "no"),
    }
    assert {members: decode(b'{"jsonrpc": "2.0", %b}' % members) for members in read} == read


@pytest.mark.parametrize(("size", "broken"), [(1, "_read_message"), (70_000, "_read_message"), (70_000, "weigh")])
def test_exceptions_while_reading_are_answered_as_internal_errors(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, size: int, broken: str
) -> None:
    def break_(*_: object) -> Message:
        raise AttributeError("secret")

    text = b'{"jsonrpc":"2.0","id":7,"method":"m","params":{"a":"%b"}}' % (b"x" * size)
    with monkeypatch.context() as patched:
        patched.setattr(codec, broken, break_)
        codecs = [Codec(), Codec(dialects=True)]
        for one in codecs:
            one.feed(b"\n")
        for one in codecs:
            for read in (one.feed, lambda data, one=one: complete(one.feed_steps(data)), one.feed_body):
                assert read(text + b"\n") == [Malformed(failure(7, InternalError("internal error")))]
    assert len(caplog.records) == 6
    assert [message for one in codecs for message in one.feed(b'{"jsonrpc":"2.0","id":1,"method":"m"}\n')] == [
        Request(1, "m"),
        Request(1, "m"),
    ]


def test_any_buffer_can_be_decoded():
    for buffer in (bytes, bytearray, memoryview):
        assert decode(buffer(b'{"jsonrpc": "2.0", "method": "m"}')) == Notification("m")


def test_invalid_json_is_a_parse_error_without_an_id():
    texts = ["", " ", "{", "nul", "{}{}", "NaN", "Infinity", '{"a": NaN}', "'a'", "[1,]", "\x00"]
    texts.append("[" * 5_000 + "]" * 5_000)  # too many levels
    texts.append(f'{{"jsonrpc": "2.0", "id": {"9" * 5_000}, "method": "m"}}')  # too many digits
    failures = [(text, fault(text).failure) for text in texts]
    assert [text for text, failed in failures if (failed.code, failed.id) != (-32700, None)] == []


def test_invalid_unicode_is_refused():
    for data in (b'"\xff"', b'"\xc3"', b'"\xed\xa0\x80"', b'"\\ud800"', b'"\\udc00x"'):
        assert fault(b'{"jsonrpc": "2.0", "id": 1, "method": ' + data + b"}").failure.code == -32600
        assert fault(data).failure.code == -32700


def test_a_request_id_is_a_string_or_an_integer():
    for id_ in ("null", "true", "false", "1.0", "1.5", "1e3", "[]", "{}"):
        answer = fault(f'{{"jsonrpc": "2.0", "id": {id_}, "method": "m"}}')
        assert (answer.failure.code, answer.failure.id, answer.silent) == (-32600, None, False)
    for id_ in ("", "7", 7, 0, -1, 10**30):
        message = decode(json.dumps({"jsonrpc": "2.0", "id": id_, "method": "m"}).encode())
        assert isinstance(message, Request)
        assert (message.id, type(message.id)) == (id_, type(id_))


def test_values_other_than_objects_and_empty_batches_are_refused():
    assert {fault(text).failure.code for text in ("1", "null", '"a"', "true", "1.5", "[]")} == {-32600}


def test_refusals_of_invalid_members_have_the_id_of_the_request():
    versions = ("", '"jsonrpc": "1.0", ', '"jsonrpc": 2.0, ', '"jsonrpc": null, ', '"JSONRPC": "2.0", ')
    texts = {f'{version}"method": "m"': -32600 for version in versions}
    texts |= {f'"jsonrpc": "2.0", "method": {method}': -32600 for method in ("null", "1", "[]", "{}")}
    texts['"jsonrpc": "2.0", "Method": "m"'] = -32600
    of_params = ("[]", "1", '"a"')
    texts |= {f'"jsonrpc": "2.0", "method": "m", "params": {params}': -32602 for params in of_params}
    failures = {text: fault(f'{{"id": 5, {text}}}').failure for text in texts}
    assert {text: failed.code for text, failed in failures.items()} == texts
    assert {failed.id for failed in failures.values()} == {5}


def test_null_params_are_read_as_no_params():
    assert decode(b'{"jsonrpc": "2.0", "id": 5, "method": "m", "params": null}') == Request(5, "m", {})
    assert decode(b'{"jsonrpc": "2.0", "method": "m", "params": null}') == Notification("m", {})


@pytest.mark.parametrize(
    ("rest", "answer"),
    [
        ('"result": {"a": 1}, "error": null', Response(1, {"a": 1})),
        ('"result": null, "error": {"code": 5, "message": "m"}', Failure(1, 5, "m")),
        ('"error": {"code": "ENOENT", "message": "m", "data": [1]}', Failure(1, -32603, "m", [1])),
        ('"error": {"code": true, "message": "m"}', Failure(1, -32603, "m")),
        ('"error": {"code": 5, "message": null}', Failure(1, 5, "an error without a message")),
    ],
)
def test_slightly_malformed_answers_are_accepted(rest: str, answer: Response | Failure) -> None:
    assert decode(f'{{"jsonrpc": "2.0", "id": 1, {rest}}}'.encode()) == answer


def test_malformed_notifications_and_answers_get_no_answer():
    for rest in (
        *('"method": 1', '"method": "m", "params": []'),
        *('"result": {}', '"id": 1, "result": null', '"id": 1, "result": [1]', '"id": null, "result": {}'),
        '"id": 1, "result": {}, "error": {"code": 1, "message": "m"}',
        *('"id": 1, "error": "m"', '"id": 1, "error": null', '"id": 1, "result": null, "error": null'),
    ):
        assert fault(f'{{"jsonrpc": "2.0", {rest}}}').silent, rest


def test_batches_may_have_valid_and_malformed_messages():
    batch = decode(b'[{"jsonrpc": "2.0", "method": "m"}, 1]')
    assert isinstance(batch, Batch)
    assert batch.messages[0] == Notification("m")
    assert isinstance(batch.messages[1], Malformed)


@settings(max_examples=60)
@given(st.binary(max_size=40) | JSON.map(lambda value: json.dumps(value).encode()))
def test_decoding_any_bytes_raises_nothing(data):
    decode(data)


def test_encoded_messages_are_one_line_and_decode_to_the_same_message():
    for message in (
        Request("a", "m", {"x": 1}),
        Notification("m", {"x": "é\u2028"}),
        Response(10**20, {"x": None}),
        Response(1, {"text": "a\nb\r\n"}),
        Failure(1, -1, "no", {"x": 1}),
        Failure(None, -1, "no"),
        Batch((Response(1, {}), Failure("1", 2, "no"))),
    ):
        assert decode(encode(message)) == message
        assert b"\n" not in encode(message)
    assert "id" not in json.loads(encode(Failure(None, -32700, "no")))


def test_values_without_a_json_form_are_replaced():
    sent = json.loads(encode(Response(1, {"x": [float("nan"), float("inf")]})))
    assert sent["result"] == {"x": [None, None]}
    sent = json.loads(encode(Response(1, {"a\ud800": ["b\udfff", {"c": ("d\ud800",)}]})))
    assert sent["result"] == {"a\ufffd": ["b\ufffd", {"c": ["d\ufffd"]}]}
    logged = Notification("notifications/message", {"level": "info", "data": [b"\xff", object(), "\ud800"]})
    assert json.loads(encode(logged))["params"]["data"] == ["_w==", "<object>", "\ufffd"]


def test_errors_become_failures_with_their_code_and_data():
    assert failure(3, InvalidParams("no", data=[1])) == Failure(3, -32602, "no", [1])


def test_prepared_results_are_encoded_as_other_results():
    result = {"a": [1, {"é": "\ud800", "x": float("nan")}]}
    prepared = Prepared(result)
    assert prepared == result
    for id_ in (0, 10**20, "7", 'a "b"', "\ud800"):
        assert encode(Response(id_, prepared)) == encode(Response(id_, result))
        assert encode(Batch((Response(id_, prepared),))) == encode(Batch((Response(id_, result),)))


def test_prepared_results_are_encoded_only_once():
    prepared = Prepared({"a": 1})
    dict.clear(prepared)
    assert encode(Response(1, prepared)) == b'{"jsonrpc":"2.0","id":1,"result":{"a":1}}'


# Streams

PING = b'{"jsonrpc":"2.0","id":%d,"method":"ping","params":{}}'
ONE, TWO, THREE = (Request(number, "ping") for number in (1, 2, 3))
LONG = b'{"jsonrpc": "2.0", "id": 7, "method": "m", "params": {"a": "%s"}}' % (b"x" * 500)
TOO_LONG = InvalidRequest("a message may have at most 100 bytes")


def whole(codec: Codec, data: bytes) -> list[Message]:
    return codec.feed(data) + codec.end()


def read(data: bytes, max_message: int = MAX_MESSAGE, **options: Any) -> list[Message]:
    """Returns the messages in a stream; checks that they are the same when it arrives byte by byte."""
    messages, codec = whole(Codec(max_message, **options), data), Codec(max_message, **options)
    assert [one for at in range(len(data)) for one in codec.feed(data[at : at + 1])] + codec.end() == messages
    return messages


def with_codes(messages: list[Message]) -> list[Message | int]:
    """Returns messages, and the error codes in place of malformed messages."""
    return [one.failure.code if isinstance(one, Malformed) else one for one in messages]


def test_each_line_is_a_message():
    assert read(PING % 1 + b"\n\r\n" + PING % 2 + b"\r\n") == [ONE, TWO]
    assert read(PING % 1 + b"\n" + PING % 2) == [ONE, TWO]
    assert read(b"[" + PING % 1 + b"," + PING % 2 + b"]\n") == [Batch((ONE, TWO))]
    assert with_codes(read(PING % 1 + b"\nhello\n" + PING % 2 + b"\n")) == [ONE, -32700, TWO]
    assert with_codes(read(PING[:20])) == [-32700]  # half a message at the end
    assert Codec().end() == []


def test_messages_are_complete_with_their_last_byte_wherever_the_line_is_cut():
    line = '{"jsonrpc":"2.0","id":1,"method":"é\u2028","params":{}}\n'.encode()
    for at in range(1, len(line)):
        codec = Codec()
        assert codec.feed(line[:at]) == []
        assert codec.feed(line[at:]) == [Request(1, "é\u2028")]
        assert codec.end() == []


def test_messages_longer_than_the_limit_are_refused():
    size = len(PING % 1)
    assert read(PING % 1 + b"\n", size) == [ONE]
    assert with_codes(read(PING % 1 + b"\n", size - 1)) == [-32600]


def test_only_servers_answer_too_long_messages():
    expected = [Malformed(failure(7, TOO_LONG)), Malformed(failure(None, TOO_LONG)), ONE]
    assert read(LONG + b"\n" + b"x" * 500 + b"\n" + PING % 1, 100) == expected
    assert read(with_length(LONG) + with_length(PING % 1), 100, dialects=True) == [expected[0], ONE]
    dropped, ping = read(LONG + b"\n" + PING % 1, 100, is_client=True)
    assert isinstance(dropped, Malformed)
    assert (dropped.failure.id, dropped.silent, ping) == (None, True, ONE)


def test_messages_are_written_as_a_line_and_bodies_without_a_line_end():
    sent = [
        Request(1, "a", {"text": "one\ntwo"}),
        Notification("b"),
        Response("c", {"x": None}),
        Failure(4, -1, "no"),
    ]
    data = b"".join(map(Codec().encode, sent))
    assert data.count(b"\n") == len(sent)
    assert read(data) == sent
    for result in ({"x": 1}, Prepared({"x": 1})):
        body = b'{"jsonrpc":"2.0","id":1,"result":{"x":1}}'
        assert Codec(line_end=b"").encode(Response(1, result)) == body
        assert Codec().encode(Response(1, result)) == body + b"\n"


def test_a_body_is_one_message_of_any_number_of_lines():
    assert Codec().decode_body(b'{"jsonrpc": "2.0",\n\n "id": 1,\n "method": "ping"}\n') == ONE
    assert with_codes([Codec().decode_body(PING % 1 + b"\n" + PING % 2)]) == [-32700]


def with_length(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def test_streams_with_a_content_length_header_first_are_read_by_headers():
    for name in (b"Content-Length", b"content-length", b"CONTENT-LENGTH", b"Content-Type: x/y\r\nContent-Length"):
        first = with_length(PING % 1).replace(b"Content-Length", name)
        assert read(first + with_length(PING % 2), dialects=True) == [ONE, TWO]


def test_answers_use_the_framing_of_the_peer():
    codec = Codec(dialects=True)
    assert whole(codec, with_length(PING % 1)) == [ONE]
    for result in ({"x": "é\n"}, Prepared({"x": "é\n"})):
        body = Codec(line_end=b"").encode(Response(1, result))
        assert codec.encode(Response(1, result)) == with_length(body)
    assert codec.encode(Notification("x")) == with_length(b'{"jsonrpc":"2.0","method":"x","params":{}}')


def test_lines_that_resemble_a_header_are_read_as_lines():
    for first in (b"Content", b"Content-Lengths: 5", b"content-typ", b"C", b"Content Length: 5"):
        assert with_codes(read(first + b"\n" + PING % 1 + b"\n", dialects=True)) == [-32700, ONE]
        codec = Codec(dialects=True)
        codec.feed(first + b"\n")
        assert codec.encode(Notification("x")).endswith(b"}\n")
    assert with_codes(read(b"Content-", dialects=True)) == [-32700]
    later = PING % 1 + b"\n" + with_length(PING % 2 + b"\n")
    assert with_codes(read(later, dialects=True)) == [ONE, -32700, TWO]


def test_headers_are_read_as_lines_without_dialects():
    assert with_codes(read(with_length(PING % 1))) == [-32700, ONE]


def test_only_servers_answer_invalid_headers():
    refusal = ParseError("Content-Length must be a number of bytes")
    data = with_length(PING % 1) + b"Content-Length: x\r\n\r\n{}" + with_length(PING % 2)
    assert read(data, dialects=True) == [ONE, Malformed(failure(None, refusal)), TWO]
    _, refused, _ = read(data, is_client=True)
    assert isinstance(refused, Malformed)
    assert refused.silent


def test_bytes_between_framed_messages_are_reported_once():
    for missing in (1, 7, 20, len(PING)):  # bytes by which the length is too small
        short = b"Content-Length: %d\r\n\r\n%b" % (len(PING % 1) - missing, PING % 1)
        assert with_codes(read(short + with_length(PING % 2), dialects=True)) == [-32700, TWO]
    data = with_length(PING % 1) + PING % 2 + b"\n" + with_length(PING % 3)
    assert with_codes(read(data, dialects=True)) == [ONE, -32700, THREE]


def test_clients_write_the_chosen_framing_and_read_either_framing():
    for data in (with_length(PING % 1), PING % 1 + b"\n"):
        for framing, framed in (("lines", lambda body: body + b"\n"), ("content-length", with_length)):
            assert read(data, is_client=True, framing=framing) == [ONE]
            codec = Codec(is_client=True, framing=framing)
            codec.feed(data)
            assert codec.encode(Notification("x")) == framed(encode(Notification("x")))


@pytest.mark.parametrize("dialects", [False, True])
@pytest.mark.parametrize("number", ["1", "NaN"])
def test_a_large_text_is_read_in_steps(number: str, dialects: bool) -> None:
    """Counting, parsing and searching for an error are separate steps."""
    names = ",".join(f'"{name:030}": 1' for name in range(30_000))
    text = f'{{"jsonrpc":"2.0","id":1,"method":"m","params":{{{names},"last":{number}}}}}'.encode()
    pauses, message = counted(Codec(dialects=dialects).decode_body_steps(text))
    assert message == Codec(dialects=dialects).decode_body(text)
    pieces = len(text) // 262_144
    assert pauses == (pieces + 3 if number == "NaN" else pieces + 1)
