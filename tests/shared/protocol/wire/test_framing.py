"""Lines of a byte stream, however it is cut; and server-sent events."""

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
    found = [line for chunk in chunks for line in buffer.feed(chunk)]
    return found + buffer.end()


def read(data: bytes) -> list[bytes | Oversized]:
    """The lines of a stream, which are the same whole and byte by byte."""
    found = lines(data)
    assert lines(*(data[at : at + 1] for at in range(len(data)))) == found
    return found


LINES: dict[bytes, list[bytes | Oversized]] = {
    b"one\ntwo\n": [b"one", b"two"],
    b"one\ntwo": [b"one", b"two"],  # the last one may lack its newline
    b"\n\r\n  \none\n\n\t\n": [b"one"],  # blank ones are left out
    b"one\r\ntwo\r\n": [b"one\r", b"two\r"],
    "a\u2028b\x0bc\n".encode(): ["a\u2028b\x0bc".encode()],  # other line ends of Unicode end none
    b"\xef\xbb\xbfone\n": [b"one"],  # a mark at the start is dropped, and none elsewhere
    b"one\n\xef\xbb\xbftwo\n": [b"one", b"\xef\xbb\xbftwo"],
    b"\xef\xbb\xbf\xef\xbb\xbfone\n": [b"\xef\xbb\xbfone"],
    b"\xef\xbbone\n": [b"\xef\xbbone"],
    b"x" * LIMIT + b"\n": [b"x" * LIMIT],
    b"x" * (LIMIT + 1) + b"\ntwo\n": [Oversized(LIMIT), b"two"],
    b"x" * LIMIT * 7 + b"\ntwo\n": [Oversized(LIMIT), b"two"],
    b"one\n" + b"x" * LIMIT * 3: [b"one", Oversized(LIMIT)],
}


def test_the_lines_of_a_stream():
    assert {data: read(data) for data in LINES} == LINES


def test_a_line_comes_as_soon_as_it_is_complete():
    buffer = LineBuffer(LIMIT)
    assert buffer.feed(b"one\ntw") == [b"one"]
    assert buffer.feed(b"o\n") == [b"two"]
    assert buffer.end() == []


def test_of_what_is_dropped_the_ends_alone_are_stored():
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
def test_a_request_that_is_dropped_is_known_by_its_id(size):
    first = b'{"method":"m","params":{"a":"%s"},"jsonrpc":"2.0","id":7}' % (b"x" * 500)
    second = b'{"jsonrpc":"2.0","id":"8","method":"m","params":{"a":"%s"}}' % (b"x" * 500)
    for limit in (10, 100):
        found = lines(*pieces(size, first, b"{}", second), limit=limit)
        assert found == [Oversized(limit, 7), b"{}", Oversized(limit, "8")]


@SIZES
def test_an_answer_that_is_dropped_is_known_by_its_id(size):
    first = b'{"jsonrpc":"2.0","id":7,"result":{"a":"%s"}}' % (b"x" * 500)
    second = b'{"result":{"a":"%s"},"id":"8"}' % (b"x" * 500)
    assert lines(*pieces(size, first, second), limit=100) == [Oversized(100, None, 7), Oversized(100, None, "8")]


@settings(max_examples=60)
@given(st.binary(max_size=60).map(lambda data: data.replace(b"x", b"\n")), st.lists(st.integers(0, 60), max_size=6))
def test_it_does_not_matter_how_the_stream_is_cut(data, places):
    cuts = [0, *sorted(place for place in places if place < len(data)), len(data)]
    chunks = [data[start:end] for start, end in itertools.pairwise(cuts)]
    assert lines(*chunks) == lines(data)


def test_an_event_is_fields_and_an_empty_line():
    event = ServerSentEvent(b"{}", event="message", id="7", retry=10)
    assert encode_event(event) == b"event: message\nid: 7\nretry: 10\ndata: {}\n\n"
    assert encode_event(ServerSentEvent(b"{}")) == b"event: message\ndata: {}\n\n"
