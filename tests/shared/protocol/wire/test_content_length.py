"""Messages after Content-Length headers, valid or not, in pieces of any size."""

import itertools
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.protocol.wire.content_length import MAX_HEADER, ContentLengthBuffer, Frame, Misframed
from shared.protocol.wire.framing import Oversized
from shared.protocol.wire.salvage import EDGE_BYTES

LIMIT = 100
ONE, TWO = b'{"id":1}', b'{"id":2}'
REQUEST = b'{"jsonrpc":"2.0","id":7,"method":"m","params":{}}'
REST = "a message must start with a Content-Length header, like the first one"
LARGER = "Content-Length is larger than the message"


def framed(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def whole(*chunks: bytes) -> list[Frame]:
    buffer = ContentLengthBuffer(LIMIT)
    frames = [frame for chunk in chunks for frame in buffer.feed(chunk)]
    return frames + buffer.end()


def bytewise(data: bytes) -> list[Frame]:
    return whole(*(data[at : at + 1] for at in range(len(data))))


def read(data: bytes) -> list[Frame]:
    """Returns the frames of a stream; checks that they are the same when it arrives byte by byte."""
    frames = whole(data)
    assert bytewise(data) == frames
    return frames


def test_bodies_are_complete_with_their_last_byte():
    buffer = ContentLengthBuffer(LIMIT)
    assert buffer.feed(framed(ONE)[:-1]) == []
    assert buffer.feed(b"}") == [ONE]
    assert buffer.end() == []


def test_header_variants_are_accepted():
    for header in (
        *(b"content-length: 8\r\n\r\n", b"CONTENT-LENGTH:8\r\n\r\n", b"Content-Length: \t8 \r\n\r\n"),
        *(b"Content-Length: 0008\r\n\r\n", b"Content-Length: 8\n\n", b"\r\n \nContent-Length: 8\r\n\r\n"),
        b"Content-Length: 8\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n",
        b"Content-Type: application/json\r\nContent-Length: 8\r\n\r\n",
    ):
        assert read(header + ONE + framed(TWO)) == [ONE, TWO], header


def test_bodies_of_any_content_are_returned_once():
    for body in (
        *(ONE, b"", b'{\n  "id": 1\r\n\r\n}', b"x" * LIMIT, rb'{"text":"}Content-Length: 5\r\n\r\n"}'),
        *(b'{"a":"}"}', b'{"a":{"b":"{"}}', b'{"a":{"b":"{}}"}}', b'{"a":"{}}"}', b'{"a":"\\"}"}'),
    ):
        assert read(framed(body) + framed(TWO)) == [body, TWO]
    body = b'{\n  "id": 1\r\n\r\n}'
    assert read(framed(body + b"\r\n") + framed(TWO)) == [body, TWO]  # a line end after the body is allowed


NUMBER, ONE_LENGTH = "Content-Length must be a number of bytes", "a header must have exactly one Content-Length"
SIZE = "a header may have at most 8,192 bytes"
FAULTS = {
    **{
        b"Content-Length: %b\r\n\r\n" % value: NUMBER
        for value in (b"", b"-8", b"+8", b"8.0", b"0x8", b"8, 8", b"\xd9\xa8", b"1000000000000000", b"9" * 5_000)
    },
    b"Content-Type: application/json\r\n\r\n": "a header must have a Content-Length",
    b"Content-Length: 8\r\nContent-Length: 9\r\n\r\n": ONE_LENGTH,
    b"Content-Length: 8\r\ncontent-length: 8\r\n\r\n": ONE_LENGTH,
    b"Content-Length: 8\r\nhello\r\n\r\n": "each line of a header must be a name, a colon and a value",
    b"X: " + b"x" * MAX_HEADER + b"\r\n\r\n": SIZE,
    b"Content-Length: 8\r\nX: " + b"x" * 20_000 + b"\r\n\r\n": SIZE,
    b"Content-Length: 8\r\n" * 1_000 + b"\r\n": SIZE,
}


def test_invalid_headers_are_reported_once_and_their_body_is_skipped():
    frames = {header: read(framed(ONE) + header + b'{"id":0}' + framed(TWO)) for header in FAULTS}
    assert frames == {header: [ONE, Misframed(reason), TWO] for header, reason in FAULTS.items()}


def test_invalid_headers_are_reported_before_more_data_arrives():
    assert ContentLengthBuffer(LIMIT).feed(b"Content-Length: x\r\n\r\n") == [Misframed(NUMBER)]
    assert ContentLengthBuffer(LIMIT).feed(b"X" * MAX_HEADER) == [Misframed(SIZE)]


def test_two_invalid_headers_are_reported_separately():
    twice = b"Content-Length: 8\r\nContent-Length: 8\r\n\r\n" + ONE
    assert [type(frame) for frame in read(twice + framed(ONE) + twice + framed(TWO))] == [
        *(Misframed, bytes, Misframed, bytes)
    ]


def test_data_without_a_header_is_reported_once_and_skipped():
    for other in (REQUEST + b"\n", b"[]\n", b"hello world\n", b"\xff\x00", b"7" * 20_000):
        assert read(framed(ONE) + other + framed(TWO)) == [ONE, Misframed(REST, may_be_rest=True), TWO]


def test_the_rest_of_a_body_beyond_its_length_is_skipped():
    short = b"Content-Length: 20\r\n\r\n" + REQUEST
    assert read(short + framed(TWO)) == [REQUEST[:20], Misframed(REST, may_be_rest=True), TWO]


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
def test_lengths_may_count_a_missing_line_end(end):
    for excess in (1, 2):
        counted = b"Content-Length: %d\r\n\r\n%b%b" % (len(REQUEST) + excess, REQUEST, end)
        assert read(counted) == [REQUEST]
        assert read(counted + framed(TWO)) == [REQUEST, TWO]


def test_the_example_of_document_000_is_read_before_more_data_arrives():
    example = b"""{"jsonrpc":"2.0","id":1,"method":"mcp/tool/execute","params":{"toolId":"filesystem/readFile",\
"inputs":{"path":"/path/to/file.txt"}}}"""
    assert ContentLengthBuffer(LIMIT * 2).feed(b"Content-Length: 134\r\n\r\n" + example) == [example]


@pytest.mark.parametrize("end", [b"", b"\r\n"])
def test_too_large_lengths_lose_only_their_own_message(end):
    for excess in (*range(3, 30), 40, 45):
        long = b"Content-Length: %d\r\n\r\n%b%b" % (len(REQUEST + end) + excess, REQUEST, end)
        assert read(long + framed(TWO) + framed(ONE)) == [Misframed(LARGER, 7), TWO, ONE], excess


def test_too_large_lengths_are_reported_at_the_next_header():
    buffer = ContentLengthBuffer(LIMIT)
    assert buffer.feed(b"Content-Length: 99\r\n\r\n" + REQUEST) == []
    assert buffer.feed(b"Content-Length: 8\r\n") == [Misframed(LARGER, 7)]
    assert buffer.feed(b"\r\n" + ONE) == [ONE]


def test_bodies_beyond_the_limit_are_dropped_and_reported_with_their_id():
    for size in (LIMIT + 1, 3 * EDGE_BYTES):
        assert read(framed(b"x" * size) + framed(TWO)) == [Oversized(LIMIT), TWO]
        first = b'{"jsonrpc":"2.0","id":7,"method":"m","params":{"a":"%b"}}' % (b"x" * size)
        last = b'{"method":"m","params":{"a":"%b"},"jsonrpc":"2.0","id":8}' % (b"x" * size)
        assert read(framed(first) + framed(last) + framed(TWO)) == [Oversized(LIMIT, 7), Oversized(LIMIT, 8), TWO]


def test_dropped_requests_are_reported_when_their_id_is_read():
    buffer = ContentLengthBuffer(LIMIT)
    assert buffer.feed(b"Content-Length: 999999999999999\r\n\r\n" + REQUEST) == [Oversized(LIMIT, 7)]
    assert buffer.feed(framed(TWO)) == [TWO]


def test_complete_messages_with_a_length_beyond_the_limit_are_reported_at_once():
    ids = {
        b'{"jsonrpc":"2.0","id":7,"method":"ping"}': 7,
        b'{"method":"m","params":{"a":{"id":8}},"jsonrpc":"2.0","id":7}\r\n': 7,
        b'{"jsonrpc":"2.0","method":"m"}': None,
        b"hello": None,
    }
    for sent, id_ in ids.items():
        for cut in (0, 30):
            buffer = ContentLengthBuffer(LIMIT)
            data = b"Content-Length: 999999999999999\r\n\r\n" + sent
            assert buffer.feed(data[:cut]) + buffer.feed(data[cut:]) == [Oversized(LIMIT, id_)]
            assert buffer.feed(framed(TWO)) == [TWO]


def test_ids_of_nested_objects_are_not_taken_for_that_of_a_dropped_request():
    buffer = ContentLengthBuffer(LIMIT)
    assert buffer.feed(b'Content-Length: 200\r\n\r\n{"params":{"a":{"b":1,"method":"m","id":8}') == []
    assert buffer.feed(b'},"id":7,"method":"m"}' + framed(TWO)) == [Oversized(LIMIT, 7), TWO]


def test_only_both_ends_of_dropped_data_are_stored():
    for start in (b"Content-Length: 999999999\r\n\r\n", b"{", b"X: "):
        buffer = ContentLengthBuffer(LIMIT)
        buffer.feed(start)
        tracemalloc.start()
        try:
            for _ in range(1_000):
                buffer.feed(b"x" * 1_000)
            assert tracemalloc.get_traced_memory()[0] < 2 * EDGE_BYTES + 10_000
        finally:
            tracemalloc.stop()


def test_incomplete_messages_at_the_end_of_the_stream_are_reported():
    within = [Misframed("the stream ended within a header")]
    before = "the stream ended before the length given by Content-Length"
    left: dict[bytes, list[Frame]] = {
        b"": [],
        b"\r\n": [],
        b"Content-Le": within,
        b"Content-Length: 8\r\n": within,
        b"Content-Length: 60\r\n\r\n" + REQUEST: [Misframed(before, 7)],
        b"Content-Length: 900\r\n\r\n": [Misframed(before)],
        b"Content-Length: 900\r\n\r\n" + REQUEST: [Oversized(LIMIT, 7)],
        b"Content-Length: 300\r\n\r\n" + ONE + b"Content-Type: x\r\n": [Oversized(LIMIT)],
        b"{}\n{}": [Misframed(REST, may_be_rest=True)],
    }
    assert {data: read(framed(ONE) + data)[1:] for data in left} == left


PIECES = st.sampled_from(
    [
        *(
            b"Content-Length: 8\r\n\r\n",
            b"content-length:8\n\n",
            b"Content-Type: x\r\n",
            b"Content-Length: 300\r\n\r\n",
        ),
        *(b"\r\n", b"\n", b"\r", b"Content-", b"Length: 49\r\n", b"\r\n\r\n", b"Content-Length: -1\r\n", b"}", b"c"),
        *(ONE, REQUEST, b"{", b"x" * 70, b'{"jsonrpc":"2.0","id":9,"method":"m",', b"X: y\r\n", b"\xff"),
    ]
)


@settings(max_examples=60)
@given(st.lists(PIECES, max_size=12).map(b"".join), st.lists(st.integers(0, 300), max_size=8))
def test_frames_are_the_same_wherever_the_stream_is_cut(data, places):
    cuts = [0, *sorted(place for place in places if place < len(data)), len(data)]
    chunks = [data[start:end] for start, end in itertools.pairwise(cuts)]
    assert whole(*chunks) == whole(data) == bytewise(data)
