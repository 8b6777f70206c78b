"""The body of a request: as it is or gzipped, in whatever pieces it comes, and never beyond its limit."""

import gzip
import tracemalloc
import zlib

import pytest

from shared.protocol.http.bodies import Body, GzipBody, check_length, make_body
from shared.protocol.http.rules import Refusal, read_headers

DATA = b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}'
PACKED = gzip.compress(DATA, mtime=0)
FULL = 1_000_000


def opened(limit=FULL, **headers):
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    headers = read_headers(raw)
    return check_length(headers, limit) or make_body(headers, limit)


def gathered(pieces, limit=FULL, coding="gzip"):
    """What comes of a body in these pieces: the bytes, or the status and the reason of a refusal."""
    body = opened(limit, content_encoding=coding)
    for refusal in (*map(body.feed, pieces), body.end()):
        if refusal is not None:
            return refusal.status, refusal.failure.message
    return bytes(body.data)


def status(pieces, limit=FULL, coding="gzip"):
    found = gathered(pieces, limit, coding)
    return found[0] if isinstance(found, tuple) else 200


@pytest.mark.parametrize("coding", ["gzip", "x-gzip", "GZip"])
def test_gzip_is_inflated(coding):
    assert gathered([PACKED], coding=coding) == DATA


def test_other_bodies_stay_as_they_are():
    assert type(opened()) is type(opened(content_encoding="identity")) is Body
    assert gathered([PACKED], coding="identity") == PACKED


def test_the_pieces_do_not_matter():
    cuts = {size: [PACKED[at : at + size] for at in range(0, len(PACKED), size)] for size in range(1, len(PACKED))}
    assert [size for size, pieces in cuts.items() if gathered(pieces) != DATA] == []


@pytest.mark.parametrize("level", [0, 1, 9])
def test_any_size_up_to_the_limit_is_taken(level):
    for size in (0, 65_535, 65_536, 65_537, 2 * 65_536, FULL):
        packed = gzip.compress(bytes(size), level)
        limit = max(size, len(packed))
        assert gathered([packed], limit) == gathered([packed[:-1], packed[-1:]], limit) == bytes(size)


def test_an_optional_head_is_taken():
    named = PACKED[:3] + b"\x08" + PACKED[4:10] + b"name\x00" + PACKED[10:]
    assert gathered([named]) == DATA


@pytest.mark.parametrize("coding", ["gzip", "identity"])
def test_a_body_may_have_as_many_bytes_as_the_limit(coding):
    whole = bytes(2_000)
    sent = [gzip.compress(whole)] if coding == "gzip" else [whole[:900], whole[900:]]
    assert (status(sent, 2_000, coding), status(sent, 1_999, coding)) == (200, 413)


@pytest.mark.parametrize("length", ["1000001", "-1", "x", "1" * 5_000])
def test_a_length_beyond_the_limit_is_refused_at_once(length):
    refusal = opened(content_length=length)
    assert isinstance(refusal, Refusal)
    assert (refusal.status, refusal.failure.message) == (413, "the body may have at most 1,000,000 bytes")


def test_a_bomb_takes_no_more_than_the_limit():
    bomb = gzip.compress(bytes(16_000_000), 9)
    body = GzipBody(FULL)
    tracemalloc.start()
    try:
        refusal = body.feed(bomb)
        assert tracemalloc.get_traced_memory()[1] < 1.5 * FULL
    finally:
        tracemalloc.stop()
    assert refusal is not None
    assert refusal.status == 413


def test_gzip_that_stands_for_nothing_does_not_go_on_for_ever():
    body, empty_blocks = GzipBody(FULL), 200 * b"\x00\x00\x00\xff\xff"
    body.feed(PACKED[:10])
    refusals = [body.feed(empty_blocks) for _ in range(FULL // 1_000)]
    assert refusals[:-1] == [None] * (len(refusals) - 1)
    assert (refusals[-1].status, bytes(body.data)) == (413, b"")


def test_gzip_that_ends_too_early_is_refused():
    said = (400, "the gzipped body ends too early")
    assert [end for end in range(len(PACKED)) if gathered([PACKED[:end]]) != said] == []


@pytest.mark.parametrize("after", [b"x", b"\x00", PACKED, b"\n"])
def test_nothing_may_follow(after):
    said = (400, "the gzipped body continues after its end")
    assert gathered([PACKED + after]) == gathered([PACKED, after]) == said


def test_what_is_no_gzip_is_refused():
    broken = {
        "json": DATA,
        "zeros": b"\x00\x00",
        "zlib": zlib.compress(DATA),
        "deflate": zlib.compress(DATA, wbits=-15),
        "checksum": PACKED[:-8] + bytes(4) + PACKED[-4:],
        "size": PACKED[:-4] + bytes(4),
        "block": PACKED[:10] + b"\xff" * 20,
        "method": b"\x1f\x8b\x07" + PACKED[3:],
    }
    said = {name: gathered([data]) for name, data in broken.items()}
    assert said == dict.fromkeys(broken, (400, "the body is not valid gzip"))


def test_a_byte_that_is_another_never_gives_another_body():
    told = (
        "the body is not valid gzip",
        "the gzipped body ends too early",
        "the gzipped body continues after its end",
    )
    fine = (DATA, *((400, words) for words in told))  # the time, the system, and hints of the head are no data
    changed = [PACKED[:at] + bytes([PACKED[at] ^ 0xFF]) + PACKED[at + 1 :] for at in range(len(PACKED))]
    assert [at for at, data in enumerate(changed) if gathered([data]) not in fine] == []
