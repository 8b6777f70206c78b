"""Lines of a byte stream in pieces of any size, and encoding of server-sent events."""

import itertools
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.protocol.wire.framing import LineBuffer, Oversized, ServerSentEvent, encode_event
from shared.protocol.wire.salvage import EDGE_BYTES

LIMIT = 10


def lines(*chunks: bytes, limit: int = LIMIT) -> list[bytes | Oversized]:
    buffer = LineBuffer(limit)
    complete = [line for chunk in chunks for line in buffer.feed(chunk)]
    return complete + buffer.end()


def read(data: bytes) -> list[bytes | Oversized]:
    """Returns the lines of a stream; checks that they are the same when it arrives byte by byte."""
    whole = lines(data)
    assert lines(*(data[at : at + 1] for at in range(len(data)))) == whole
    return whole


LINES: dict[bytes, list[bytes | Oversized]] = {
    b"one\ntwo\n": [b"one", b"two"],
    b"one\ntwo": [b"one", b"two"],  # the last one may lack its newline
    b"\n\r\n  \none\n\n\t\n": [b"one"],  # blank ones are left out
    b"one\r\ntwo\r\n": [b"one\r", b"two\r"],
    "a\u2028b\x0bc\n".encode(): ["a\u2028b\x0bc".encode()],  # other line separators of Unicode do not end a line
    b"\xef\xbb\xbfone\n": [b"one"],  # a byte order mark is dropped at the start only
    b"one\n\xef\xbb\xbftwo\n": [b"one", b"\xef\xbb\xbftwo"],
    b"\xef\xbb\xbf\xef\xbb\xbfone\n": [b"\xef\xbb\xbfone"],
    b"\xef\xbbone\n": [b"\xef\xbbone"],
    b"x" * LIMIT + b"\n": [b"x" * LIMIT],
    b"x" * (LIMIT + 1) + b"\ntwo\n": [Oversized(LIMIT), b"two"],
    b"x" * LIMIT * 7 + b"\ntwo\n": [Oversized(LIMIT), b"two"],
    b"one\n" + b"x" * LIMIT * 3: [b"one", Oversized(LIMIT)],
}


def test_streams_are_split_into_lines():
    assert {data: read(data) for data in LINES} == LINES


def test_lines_are_returned_when_they_are_complete():
    buffer = LineBuffer(LIMIT)
    assert buffer.feed(b"one\ntw") == [b"one"]
    assert buffer.feed(b"o\n") == [b"two"]
    assert buffer.end() == []


def test_only_both_ends_of_dropped_lines_are_stored():
    buffer = LineBuffer(LIMIT)
    tracemalloc.start()
    try:
        for _ in range(1_000):
            buffer.feed(b"x" * 1_000)
        assert tracemalloc.get_traced_memory()[0] < 2 * EDGE_BYTES + 10_000
    finally:
        tracemalloc.stop()


SIZES = pytest.mark.parametrize("size", [1, 7, 60, 10_000])


def pieces(size: int, *sent: bytes) -> list[bytes]:
    data = b"\n".join(sent)
    return [data[at : at + size] for at in range(0, len(data), size)]


@SIZES
def test_dropped_requests_are_reported_with_their_id(size):
    first = b'{"method":"m","params":{"a":"%s"},"jsonrpc":"2.0","id":7}' % (b"x" * 500)
    second = b'{"jsonrpc":"2.0","id":"8","method":"m","params":{"a":"%s"}}' % (b"x" * 500)
    for limit in (10, 100):
        frames = lines(*pieces(size, first, b"{}", second), limit=limit)
        assert frames == [Oversized(limit, 7), b"{}", Oversized(limit, "8")]


@SIZES
def test_dropped_answers_are_reported_with_their_id(size):
    first = b'{"jsonrpc":"2.0","id":7,"result":{"a":"%s"}}' % (b"x" * 500)
    second = b'{"result":{"a":"%s"},"id":"8"}' % (b"x" * 500)
    assert lines(*pieces(size, first, second), limit=100) == [Oversized(100, None, 7), Oversized(100, None, "8")]


@settings(max_examples=60)
@given(st.binary(max_size=60).map(lambda data: data.replace(b"x", b"\n")), st.lists(st.integers(0, 60), max_size=6))
def test_lines_are_the_same_wherever_the_stream_is_cut(data, places):
    cuts = [0, *sorted(place for place in places if place < len(data)), len(data)]
    chunks = [data[start:end] for start, end in itertools.pairwise(cuts)]
    assert lines(*chunks) == lines(data)


def test_events_are_encoded_as_fields_and_an_empty_line():
    event = ServerSentEvent(b"{}", event="message", id="7", retry=10)
    assert encode_event(event) == b"event: message\nid: 7\nretry: 10\ndata: {}\n\n"
    assert encode_event(ServerSentEvent(b"{}")) == b"event: message\ndata: {}\n\n"
