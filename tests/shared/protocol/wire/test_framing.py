"""Lines of a byte stream, however it is cut; and server-sent events."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.protocol.wire.framing import LineBuffer, Oversized, ServerSentEvent, encode_event
from shared.protocol.wire.salvage import EDGE

LIMIT = 10


def lines(*chunks: bytes, limit: int = LIMIT) -> list[bytes | Oversized]:
    buffer = LineBuffer(limit)
    found = [line for chunk in chunks for line in buffer.feed(chunk)]
    return found + buffer.end()


def bytewise(data: bytes) -> list[bytes | Oversized]:
    return lines(*(data[at : at + 1] for at in range(len(data))))


@pytest.fixture(params=[lines, bytewise], ids=["whole", "byte by byte"])
def read(request):
    return request.param


def test_each_line_is_given_once(read):
    assert read(b"one\ntwo\n") == [b"one", b"two"]


def test_a_line_comes_as_soon_as_it_is_complete():
    buffer = LineBuffer(LIMIT)
    assert buffer.feed(b"one\ntw") == [b"one"]
    assert buffer.feed(b"o\n") == [b"two"]
    assert buffer.end() == []


def test_the_last_line_may_lack_its_newline(read):
    assert read(b"one\ntwo") == [b"one", b"two"]


def test_blank_lines_are_left_out(read):
    assert read(b"\n\r\n  \none\n\n\t\n") == [b"one"]


def test_a_carriage_return_is_part_of_the_line_as_white_space(read):
    assert read(b"one\r\ntwo\r\n") == [b"one\r", b"two\r"]


def test_other_line_ends_of_unicode_end_no_line(read):
    assert read("a\u2028b\x0bc\n".encode()) == ["a\u2028b\x0bc".encode()]


def test_a_mark_at_the_start_is_dropped(read):
    assert read(b"\xef\xbb\xbfone\n") == [b"one"]


def test_a_mark_anywhere_else_stays(read):
    assert read(b"one\n\xef\xbb\xbftwo\n") == [b"one", b"\xef\xbb\xbftwo"]


def test_a_second_mark_stays(read):
    assert read(b"\xef\xbb\xbf\xef\xbb\xbfone\n") == [b"\xef\xbb\xbfone"]


def test_a_part_of_a_mark_is_no_mark(read):
    assert read(b"\xef\xbbone\n") == [b"\xef\xbbone"]


def test_a_line_of_the_limit_is_given(read):
    assert read(b"x" * LIMIT + b"\n") == [b"x" * LIMIT]


def test_a_longer_line_is_dropped_and_the_next_one_given(read):
    assert read(b"x" * (LIMIT + 1) + b"\ntwo\n") == [Oversized(LIMIT), b"two"]


def test_a_much_longer_line_is_reported_once(read):
    assert read(b"x" * LIMIT * 7 + b"\ntwo\n") == [Oversized(LIMIT), b"two"]


def test_a_longer_line_at_the_end_is_reported_once(read):
    assert read(b"one\n" + b"x" * LIMIT * 3) == [b"one", Oversized(LIMIT)]


def test_of_what_is_dropped_the_ends_alone_are_stored():
    buffer = LineBuffer(LIMIT)
    for _ in range(1_000):
        buffer.feed(b"x" * 1_000)
    assert len(buffer._buffer) + len(buffer._tail) <= 2 * EDGE


@pytest.mark.parametrize("limit", [10, 100])
@pytest.mark.parametrize("size", [1, 7, 60, 10_000])
def test_a_request_that_is_dropped_is_known_by_its_id(limit, size):
    first = b'{"method":"m","params":{"a":"%s"},"jsonrpc":"2.0","id":7}' % (b"x" * 500)
    second = b'{"jsonrpc":"2.0","id":"8","method":"m","params":{"a":"%s"}}' % (b"x" * 500)
    data = b"\n".join([first, b"{}", second])
    chunks = [data[at : at + size] for at in range(0, len(data), size)]
    assert lines(*chunks, limit=limit) == [Oversized(limit, 7), b"{}", Oversized(limit, "8")]


@pytest.mark.parametrize("size", [1, 7, 60, 10_000])
def test_an_answer_that_is_dropped_is_known_by_its_id(size):
    first = b'{"jsonrpc":"2.0","id":7,"result":{"a":"%s"}}' % (b"x" * 500)
    second = b'{"result":{"a":"%s"},"id":"8"}' % (b"x" * 500)
    data = b"\n".join([first, second])
    chunks = [data[at : at + size] for at in range(0, len(data), size)]
    assert lines(*chunks, limit=100) == [Oversized(100, None, 7), Oversized(100, None, "8")]


@given(st.binary(max_size=60).map(lambda data: data.replace(b"x", b"\n")), st.lists(st.integers(0, 60), max_size=6))
def test_it_does_not_matter_how_the_stream_is_cut(data, places):
    cuts = [0, *sorted(place for place in places if place < len(data)), len(data)]
    chunks = [data[start:end] for start, end in itertools.pairwise(cuts)]
    assert lines(*chunks) == lines(data)


def test_an_event_is_fields_and_an_empty_line():
    event = ServerSentEvent(b"{}", event="message", id="7", retry=10)
    assert encode_event(event) == b"event: message\nid: 7\nretry: 10\ndata: {}\n\n"


def test_an_event_needs_neither_id_nor_retry():
    assert encode_event(ServerSentEvent(b"{}")) == b"event: message\ndata: {}\n\n"
