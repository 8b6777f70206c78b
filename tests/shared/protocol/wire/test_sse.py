"""`EventStream`: events from bytes in pieces of any size."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.protocol.wire.framing import Oversized, ServerSentEvent, encode_event
from shared.protocol.wire.sse import EventStream


def _read(data: bytes, size: int = 10_000, limit: int = 1_000) -> list[ServerSentEvent | Oversized]:
    stream = EventStream(limit)
    return [event for start in range(0, len(data), size) for event in stream.feed(data[start : start + size])]


CASES = [
    (b"data: a\n\n", [ServerSentEvent(b"a")]),
    (b"data:a\r\n\r\n", [ServerSentEvent(b"a")]),
    (b"data:  a\r\r", [ServerSentEvent(b" a")]),
    (b"data: a\r\ndata: b\n\n", [ServerSentEvent(b"a\nb")]),
    (b"\xef\xbb\xbfdata: a\n\n", [ServerSentEvent(b"a")]),
    (b": ping\n\n:\n\ndata: a\n\n", [ServerSentEvent(b"a")]),
    (b"event: endpoint\ndata: /x\n\n", [ServerSentEvent(b"/x", "endpoint")]),
    (b"id: 7\nretry: 30\ndata\n\n", [ServerSentEvent(b"", id="7", retry=30)]),
    (b"id: a\0b\nretry: 3s\nother: x\ndata: a\n\n", [ServerSentEvent(b"a")]),
    (b"id: a\x0bb\ndata: a\n\nid: \x7f\ndata: b\n\n", [ServerSentEvent(b"a"), ServerSentEvent(b"b")]),
    (b"event: x\n\ndata: a\n\n", [ServerSentEvent(b"a")]),
    (b"data: a\n\ndata: b\n", [ServerSentEvent(b"a")]),
    ("data: \u2028é\n\n".encode(), [ServerSentEvent("\u2028é".encode())]),
    (b"\n\n\n", []),
]


@pytest.mark.parametrize("size", [1, 2, 3, 1_000])
def test_events_are_read_from_chunks_of_any_size(size: int) -> None:
    assert [(data, _read(data, size)) for data, _ in CASES] == CASES


@pytest.mark.parametrize("size", [1, 5, 1_000])
def test_events_beyond_the_limit_are_dropped(size: int) -> None:
    for start in (b"data: " + b"x" * 40, b"data: 1234\n" * 5 + b"data", b"x" * 60 + b"\ndata: a"):
        data = start + b"\nid: 4\ndata: y\n\ndata: a\n\n"
        assert _read(data, size, limit=30) == [Oversized(30), ServerSentEvent(b"a")]


def test_comments_do_not_count_toward_the_limit() -> None:
    assert _read(b":ping\n" * 100 + b"data: a\n\n", limit=30) == [ServerSentEvent(b"a")]


def test_the_last_id_is_that_of_the_last_complete_event() -> None:
    stream = EventStream(100)
    stream.feed(b"id: 1\nretry: 20\ndata: a\n\ndata: b\n\nid: 2\n")
    assert (stream.last_id, stream.retry) == ("1", 20)
    stream.restart()
    assert stream.feed(b"data: c\n\n") == [ServerSentEvent(b"c")]
    assert stream.last_id == "1"
    stream.feed(b"id: 3\n\n")
    assert stream.last_id == "3"


def test_a_restart_drops_an_incomplete_event() -> None:
    stream = EventStream(100)
    stream.feed(b"data: a\ndata: b")
    stream.restart()
    assert stream.feed(b"\xef\xbb\xbfdata: c\n\n") == [ServerSentEvent(b"c")]


DATA = st.binary(max_size=30).map(lambda data: data.translate(None, b"\r\n"))
EVENTS = st.lists(st.builds(ServerSentEvent, data=DATA, id=st.none() | st.sampled_from(["1", "a_2"])))


@settings(max_examples=40)
@given(EVENTS, st.integers(1, 20))
def test_encoded_events_are_read_back_unchanged(events: list[ServerSentEvent], size: int) -> None:
    assert _read(b"".join(map(encode_event, events)), size) == events


def test_too_long_ids_are_ignored() -> None:
    stream = EventStream(10_000)
    stream.feed(b"id: %b\ndata: a\n\n" % (b"a" * 4_097))
    assert stream.last_id is None
