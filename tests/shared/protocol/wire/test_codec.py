"""What a codec makes of any bytes, however they are cut, and that encoding gives JSON."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import InvalidParams, InvalidRequest, ParseError
from shared.protocol.wire.codec import Codec, decode, encode
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

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def fault(text: str | bytes) -> Malformed:
    message = decode(text.encode() if isinstance(text, str) else text)
    assert isinstance(message, Malformed)
    return message


def test_a_request_keeps_its_id_method_and_params():
    message = decode(b'{"jsonrpc": "2.0", "id": "a", "method": "m", "params": {"x": [1]}}')
    assert message == Request("a", "m", {"x": [1]})


def test_params_may_be_left_out():
    assert decode(b'{"jsonrpc": "2.0", "id": 1, "method": "m"}') == Request(1, "m", {})


def test_a_message_without_id_is_a_notification():
    assert decode(b'{"jsonrpc": "2.0", "method": "m"}') == Notification("m")


def test_a_result_is_a_response():
    assert decode(b'{"jsonrpc": "2.0", "id": 0, "result": {}}') == Response(0, {})


def test_an_error_is_a_failure():
    message = decode(b'{"jsonrpc": "2.0", "id": 1, "error": {"code": -1, "message": "no", "data": [1]}}')
    assert message == Failure(1, -1, "no", [1])


def test_an_error_may_lack_an_id():
    message = decode(b'{"jsonrpc": "2.0", "error": {"code": -1, "message": "no"}}')
    assert message == Failure(None, -1, "no")


@pytest.mark.parametrize("buffer", [bytes, bytearray, memoryview])
def test_any_buffer_can_be_decoded(buffer):
    assert decode(buffer(b'{"jsonrpc": "2.0", "method": "m"}')) == Notification("m")


@pytest.mark.parametrize(
    "text", ["", " ", "{", "nul", "{}{}", "NaN", "Infinity", '{"a": NaN}', "'a'", "[1,]", "\x00"]
)
def test_what_is_no_json_is_a_parse_error_without_an_id(text):
    assert fault(text).failure.code == -32700
    assert fault(text).failure.id is None


@pytest.mark.parametrize("data", [b'"\xff"', b'"\xc3"', b'"\xed\xa0\x80"', b'"\\ud800"', b'"\\udc00x"'])
def test_text_that_is_no_unicode_is_refused(data):
    assert fault(b'{"jsonrpc": "2.0", "id": 1, "method": ' + data + b"}").failure.code == -32600
    assert fault(data).failure.code == -32700


def test_too_many_levels_are_a_parse_error():
    assert fault("[" * 5_000 + "]" * 5_000).failure.code == -32700


def test_an_integer_of_too_many_digits_is_a_parse_error():
    assert fault(f'{{"jsonrpc": "2.0", "id": {"9" * 5_000}, "method": "m"}}').failure.code == -32700


@pytest.mark.parametrize("id", ["null", "true", "false", "1.0", "1.5", "1e3", "[]", "{}"])
def test_a_request_id_is_a_string_or_an_integer(id):
    answer = fault(f'{{"jsonrpc": "2.0", "id": {id}, "method": "m"}}')
    assert (answer.failure.code, answer.failure.id, answer.silent) == (-32600, None, False)


@pytest.mark.parametrize("id", ["", "7", 7, 0, -1, 10**30])
def test_ids_keep_their_type(id):
    message = decode(json.dumps({"jsonrpc": "2.0", "id": id, "method": "m"}).encode())
    assert isinstance(message, Request)
    assert (message.id, type(message.id)) == (id, type(id))


@pytest.mark.parametrize("text", ["1", "null", '"a"', "true", "1.5"])
def test_a_message_is_an_object(text):
    assert fault(text).failure.code == -32600


@pytest.mark.parametrize(
    "version", ["", '"jsonrpc": "1.0", ', '"jsonrpc": 2.0, ', '"jsonrpc": null, ', '"JSONRPC": "2.0", ']
)
def test_the_version_of_json_rpc_must_be_named_and_the_id_is_repeated(version):
    answer = fault(f'{{{version}"id": 5, "method": "m"}}').failure
    assert (answer.code, answer.id) == (-32600, 5)


@pytest.mark.parametrize("method", ["null", "1", "[]", "{}"])
def test_a_method_is_a_string(method):
    answer = fault(f'{{"jsonrpc": "2.0", "id": 5, "method": {method}}}').failure
    assert (answer.code, answer.id) == (-32600, 5)


@pytest.mark.parametrize("params", ["null", "[]", "1", '"a"'])
def test_params_are_an_object(params):
    answer = fault(f'{{"jsonrpc": "2.0", "id": 5, "method": "m", "params": {params}}}').failure
    assert (answer.code, answer.id) == (-32602, 5)


@pytest.mark.parametrize("rest", ['"method": 1', '"method": "m", "params": []'])
def test_a_malformed_notification_gets_no_answer(rest):
    assert fault(f'{{"jsonrpc": "2.0", {rest}}}').silent


@pytest.mark.parametrize(
    "rest",
    [
        '"result": {}',
        '"id": 1, "result": null',
        '"id": 1, "result": [1]',
        '"id": null, "result": {}',
        '"id": 1, "result": {}, "error": {"code": 1, "message": "m"}',
        '"id": 1, "error": {"code": "1", "message": "m"}',
        '"id": 1, "error": {"code": true, "message": "m"}',
        '"id": 1, "error": {"code": 1}',
        '"id": 1, "error": "m"',
    ],
)
def test_a_malformed_answer_gets_no_answer(rest):
    assert fault(f'{{"jsonrpc": "2.0", {rest}}}').silent


def test_the_last_of_equal_keys_counts():
    assert decode(b'{"jsonrpc": "2.0", "method": "a", "method": "b"}') == Notification("b")


def test_keys_are_compared_exactly():
    assert fault('{"jsonrpc": "2.0", "id": 1, "Method": "m"}').failure.code == -32600


def test_a_batch_holds_messages_good_and_bad():
    batch = decode(b'[{"jsonrpc": "2.0", "method": "m"}, 1]')
    assert isinstance(batch, Batch)
    assert batch.messages[0] == Notification("m")
    assert isinstance(batch.messages[1], Malformed)


def test_an_empty_batch_is_malformed():
    assert fault("[]").failure.code == -32600


@given(st.binary(max_size=40))
def test_decoding_never_raises_for_bytes(data):
    decode(data)


@given(JSON)
def test_decoding_never_raises_for_json(value):
    decode(json.dumps(value).encode())


@pytest.mark.parametrize(
    "message",
    [
        Request("a", "m", {"x": 1}),
        Notification("m", {"x": "é\u2028"}),
        Response(10**20, {"x": None}),
        Failure(1, -1, "no", {"x": 1}),
        Failure(None, -1, "no"),
        Batch((Response(1, {}), Failure("1", 2, "no"))),
    ],
)
def test_what_is_encoded_is_decoded_again(message):
    assert decode(encode(message)) == message


def test_an_encoded_message_is_one_line():
    assert b"\n" not in encode(Response(1, {"text": "a\nb\r\n"}))


def test_an_error_without_a_known_request_has_no_id_at_all():
    assert "id" not in json.loads(encode(Failure(None, -32700, "no")))


def test_numbers_that_json_lacks_become_null():
    assert json.loads(encode(Response(1, {"x": [float("nan"), float("inf")]})))["result"] == {"x": [None, None]}


def test_lone_surrogates_are_replaced():
    sent = json.loads(encode(Response(1, {"a\ud800": ["b\udfff", {"c": ("d\ud800",)}]})))
    assert sent["result"] == {"a\ufffd": ["b\ufffd", {"c": ["d\ufffd"]}]}


def test_an_error_becomes_a_failure_with_its_code_and_data():
    assert failure(3, InvalidParams("no", data=[1])) == Failure(3, -32602, "no", [1])


@pytest.mark.parametrize("id", [0, 10**20, "7", 'a "b"', "\ud800"])
def test_a_prepared_result_is_sent_as_any_other(id):
    result = {"a": [1, {"é": "\ud800", "x": float("nan")}]}
    prepared = Prepared(result)
    assert prepared == result
    assert encode(Response(id, prepared)) == encode(Response(id, result))
    assert encode(Batch((Response(id, prepared),))) == encode(Batch((Response(id, result),)))


def test_a_prepared_result_is_encoded_once():
    prepared = Prepared({"a": 1})
    dict.clear(prepared)
    assert encode(Response(1, prepared)) == b'{"jsonrpc":"2.0","id":1,"result":{"a":1}}'


def test_what_is_no_json_at_all_is_sent_by_name():
    logged = Notification("notifications/message", {"level": "info", "data": [b"\xff", object(), "\ud800"]})
    assert json.loads(encode(logged))["params"]["data"] == ["_w==", "<object>", "\ufffd"]


PING = b'{"jsonrpc":"2.0","id":%d,"method":"ping","params":{}}'
LONG = b'{"jsonrpc": "2.0", "id": 7, "method": "m", "params": {"a": "%s"}}' % (b"x" * 500)


def whole(codec: Codec, data: bytes) -> list[Message]:
    return codec.feed(data) + codec.end()


def bytewise(codec: Codec, data: bytes) -> list[Message]:
    return [message for at in range(len(data)) for message in codec.feed(data[at : at + 1])] + codec.end()


@pytest.fixture(params=[whole, bytewise], ids=["whole", "byte by byte"])
def read(request):
    return request.param


def test_each_line_is_a_message(read):
    assert read(Codec(), PING % 1 + b"\n\r\n" + PING % 2 + b"\r\n") == [Request(1, "ping"), Request(2, "ping")]


def test_a_batch_is_one_message(read):
    (batch,) = read(Codec(), b"[" + PING % 1 + b"," + PING % 2 + b"]\n")
    assert batch == Batch((Request(1, "ping"), Request(2, "ping")))


def test_what_is_no_message_stands_in_its_place(read):
    first, bad, last = read(Codec(), PING % 1 + b"\nhello\n" + PING % 2 + b"\n")
    assert isinstance(bad, Malformed)
    assert (first, bad.failure.code, last) == (Request(1, "ping"), -32700, Request(2, "ping"))


def test_a_message_comes_with_its_last_byte_wherever_it_is_cut():
    line = '{"jsonrpc":"2.0","id":1,"method":"é\u2028","params":{}}\n'.encode()
    for at in range(1, len(line)):
        codec = Codec()
        assert codec.feed(line[:at]) == []
        assert codec.feed(line[at:]) == [Request(1, "é\u2028")]
        assert codec.end() == []


def test_the_last_message_may_lack_its_line_end(read):
    assert read(Codec(), PING % 1 + b"\n" + PING % 2) == [Request(1, "ping"), Request(2, "ping")]


def test_half_a_message_at_the_end_is_no_message(read):
    (refused,) = read(Codec(), PING[:20])
    assert isinstance(refused, Malformed)
    assert refused.failure.code == -32700


def test_a_stream_without_bytes_has_no_messages():
    assert Codec().end() == []


def test_a_message_may_have_so_many_bytes_and_no_more(read):
    size = len(PING % 1)
    assert read(Codec(size), PING % 1 + b"\n") == [Request(1, "ping")]
    (refused,) = read(Codec(size - 1), PING % 1 + b"\n")
    assert isinstance(refused, Malformed)


def test_a_server_tells_of_what_is_too_long_under_its_id(read):
    refused, nameless, ping = read(Codec(100), LONG + b"\n" + b"x" * 500 + b"\n" + PING % 1)
    told = InvalidRequest("a message may have 100 bytes at most")
    assert refused == Malformed(failure(7, told))
    assert nameless == Malformed(failure(None, told))
    assert ping == Request(1, "ping")


def test_a_client_tells_nobody_of_what_is_too_long(read):
    dropped, ping = read(Codec(100, is_client=True), LONG + b"\n" + PING % 1)
    assert isinstance(dropped, Malformed)
    assert (dropped.failure.id, dropped.silent) == (None, True)
    assert ping == Request(1, "ping")


def test_a_message_is_written_as_a_line(read):
    sent = [
        Request(1, "a", {"text": "one\ntwo"}),
        Notification("b"),
        Response("c", {"x": None}),
        Failure(4, -1, "no"),
    ]
    codec = Codec()
    data = b"".join(codec.encode(message) for message in sent)
    assert data.count(b"\n") == len(sent)
    assert read(Codec(), data) == sent


def test_a_body_is_written_without_a_line_end():
    codec = Codec(line_end=b"")
    for result in ({"x": 1}, Prepared({"x": 1})):
        assert codec.encode(Response(1, result)) == b'{"jsonrpc":"2.0","id":1,"result":{"x":1}}'
        assert Codec().encode(Response(1, result)) == b'{"jsonrpc":"2.0","id":1,"result":{"x":1}}\n'


def test_a_body_is_one_message_whatever_its_lines():
    assert Codec().decode_body(b'{"jsonrpc": "2.0",\n\n "id": 1,\n "method": "ping"}\n') == Request(1, "ping")


def test_of_a_body_without_a_message_the_answer_is_told():
    refused = Codec().decode_body(PING % 1 + b"\n" + PING % 2)
    assert isinstance(refused, Malformed)
    assert refused.failure.code == -32700


def with_length(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


@pytest.mark.parametrize("name", [b"Content-Length", b"content-length", b"CONTENT-LENGTH"])
def test_a_stream_that_begins_with_a_header_has_one_before_each_message(read, name):
    first = with_length(PING % 1).replace(b"Content-Length", name)
    assert read(Codec(dialects=True), first + with_length(PING % 2)) == [Request(1, "ping"), Request(2, "ping")]


def test_a_content_type_may_stand_in_front(read):
    typed = b"Content-Type: application/json\r\n" + with_length(PING % 1)
    assert read(Codec(dialects=True), typed) == [Request(1, "ping")]


@pytest.mark.parametrize("result", [{"x": "é\n"}, Prepared({"x": "é\n"})], ids=["plain", "prepared"])
def test_answers_are_framed_as_the_peer_does(read, result):
    codec = Codec(dialects=True)
    assert read(codec, with_length(PING % 1)) == [Request(1, "ping")]
    body = Codec(line_end=b"").encode(Response(1, result))
    assert codec.encode(Response(1, result)) == with_length(body)
    assert codec.encode(Notification("x")) == with_length(b'{"jsonrpc":"2.0","method":"x","params":{}}')


@pytest.mark.parametrize("first", [b"Content", b"Content-Lengths: 5", b"content-typ", b"C", b"Content Length: 5"])
def test_a_line_that_begins_as_a_header_does_is_a_line(read, first):
    codec = Codec(dialects=True)
    refused, ping = read(codec, first + b"\n" + PING % 1 + b"\n")
    assert isinstance(refused, Malformed)
    assert (refused.failure.code, ping) == (-32700, Request(1, "ping"))
    assert codec.encode(Notification("x")).endswith(b"}\n")


def test_a_stream_may_end_before_its_framing_is_known(read):
    (refused,) = read(Codec(dialects=True), b"Content-")
    assert isinstance(refused, Malformed)
    assert refused.failure.code == -32700


def test_a_header_on_a_later_line_is_no_header(read):
    found = read(Codec(dialects=True), PING % 1 + b"\n" + with_length(PING % 2 + b"\n"))
    assert [type(message) for message in found] == [Request, Malformed, Request]


def test_a_server_tells_what_is_wrong_with_a_header(read):
    first, refused, last = read(
        Codec(dialects=True), with_length(PING % 1) + b"Content-Length: x\r\n\r\n{}" + with_length(PING % 2)
    )
    told = ParseError("Content-Length must be a number of bytes")
    assert (first, refused, last) == (Request(1, "ping"), Malformed(failure(None, told)), Request(2, "ping"))


@pytest.mark.parametrize("missing", [1, 7, 20, len(PING)])
def test_a_length_that_is_too_small_is_told_of_once(read, missing):
    short = b"Content-Length: %d\r\n\r\n%b" % (len(PING % 1) - missing, PING % 1)
    refused, ping = read(Codec(dialects=True), short + with_length(PING % 2))
    assert isinstance(refused, Malformed)
    assert (refused.failure.code, ping) == (-32700, Request(2, "ping"))


def test_a_line_among_messages_with_headers_is_told_of(read):
    _, refused, ping = read(Codec(dialects=True), with_length(PING % 1) + PING % 2 + b"\n" + with_length(PING % 3))
    assert isinstance(refused, Malformed)
    assert (refused.failure.code, ping) == (-32700, Request(3, "ping"))


def test_a_server_tells_of_a_body_that_is_too_long_under_its_id(read):
    refused, ping = read(Codec(100, dialects=True), with_length(LONG) + with_length(PING % 1))
    assert refused == Malformed(failure(7, InvalidRequest("a message may have 100 bytes at most")))
    assert ping == Request(1, "ping")


def test_headers_are_lines_where_dialects_are_off(read):
    length, ping = read(Codec(), with_length(PING % 1))
    assert isinstance(length, Malformed)
    assert (length.failure.code, ping) == (-32700, Request(1, "ping"))


def test_a_client_writes_as_it_was_told_and_reads_what_comes(read):
    for data in (with_length(PING % 1), PING % 1 + b"\n"):
        lines, headers = Codec(is_client=True), Codec(is_client=True, framing="content-length")
        for codec in (lines, headers):
            assert read(codec, data) == [Request(1, "ping")]
        body = encode(Notification("x"))
        assert lines.encode(Notification("x")) == body + b"\n"
        assert headers.encode(Notification("x")) == with_length(body)


def test_a_client_tells_nobody_of_a_bad_header(read):
    refused, ping = read(Codec(is_client=True), b"Content-Length: x\r\n\r\n{}" + with_length(PING % 1))
    assert isinstance(refused, Malformed)
    assert (refused.silent, ping) == (True, Request(1, "ping"))
