"""Plain and gzipped request bodies, read in pieces of any size, with a size limit."""

import gzip
import tracemalloc
import zlib

import pytest

from shared.protocol.http.bodies import Body, GzipBody, check_length, make_body
from shared.protocol.http.rules import Refusal, read_headers

DATA = b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}'
PACKED = gzip.compress(DATA, mtime=0)
FULL = 1_000_000


def body_or_refusal(limit=FULL, **headers):
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    headers = read_headers(raw)
    return check_length(headers, limit) or make_body(headers, limit)


def read_body(pieces, limit=FULL, coding="gzip"):
    """Returns the bytes of a body that arrives in these pieces, or the status and message of its refusal."""
    body = body_or_refusal(limit, content_encoding=coding)
    for refusal in (*map(body.feed, pieces), body.end()):
        if refusal is not None:
            return refusal.status, refusal.failure.message
    return bytes(body.data)


def status(pieces, limit=FULL, coding="gzip"):
    result = read_body(pieces, limit, coding)
    return result[0] if isinstance(result, tuple) else 200


@pytest.mark.parametrize("coding", ["gzip", "x-gzip", "GZip"])
def test_gzipped_bodies_are_inflated(coding):
    assert read_body([PACKED], coding=coding) == DATA


def test_bodies_of_other_codings_are_not_inflated():
    assert type(body_or_refusal()) is type(body_or_refusal(content_encoding="identity")) is Body
    assert read_body([PACKED], coding="identity") == PACKED


def test_gzipped_bodies_are_inflated_from_pieces_of_any_size():
    cuts = {size: [PACKED[at : at + size] for at in range(0, len(PACKED), size)] for size in range(1, len(PACKED))}
    assert [size for size, pieces in cuts.items() if read_body(pieces) != DATA] == []


@pytest.mark.parametrize("level", [0, 1, 9])
def test_gzipped_bodies_of_any_size_up_to_the_limit_are_accepted(level):
    for size in (0, 65_535, 65_536, 65_537, 2 * 65_536, FULL):
        packed = gzip.compress(bytes(size), level)
        limit = max(size, len(packed))
        assert read_body([packed], limit) == read_body([packed[:-1], packed[-1:]], limit) == bytes(size)


def test_gzip_headers_with_a_file_name_are_accepted():
    named = PACKED[:3] + b"\x08" + PACKED[4:10] + b"name\x00" + PACKED[10:]
    assert read_body([named]) == DATA


@pytest.mark.parametrize("coding", ["gzip", "identity"])
def test_bodies_longer_than_the_limit_get_status_413(coding):
    whole = bytes(2_000)
    sent = [gzip.compress(whole)] if coding == "gzip" else [whole[:900], whole[900:]]
    assert (status(sent, 2_000, coding), status(sent, 1_999, coding)) == (200, 413)


@pytest.mark.parametrize("length", ["1000001", "-1", "x", "1" * 5_000])
def test_invalid_or_too_large_content_lengths_get_status_413(length):
    refusal = body_or_refusal(content_length=length)
    assert isinstance(refusal, Refusal)
    assert (refusal.status, refusal.failure.message) == (413, "the body may have at most 1,000,000 bytes")


def test_gzip_bombs_use_no_more_memory_than_the_limit():
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


def test_endless_empty_gzip_blocks_are_refused():
    body, empty_blocks = GzipBody(FULL), 200 * b"\x00\x00\x00\xff\xff"
    body.feed(PACKED[:10])
    refusals = [body.feed(empty_blocks) for _ in range(FULL // 1_000)]
    assert refusals[:-1] == [None] * (len(refusals) - 1)
    assert (refusals[-1].status, bytes(body.data)) == (413, b"")


def test_truncated_gzip_is_refused():
    refusal = (400, "the gzipped body ends too early")
    assert [end for end in range(len(PACKED)) if read_body([PACKED[:end]]) != refusal] == []


@pytest.mark.parametrize("after", [b"x", b"\x00", PACKED, b"\n"])
def test_bytes_after_the_end_of_gzip_are_refused(after):
    refusal = (400, "the gzipped body continues after its end")
    assert read_body([PACKED + after]) == read_body([PACKED, after]) == refusal


def test_invalid_gzip_is_refused():
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
    results = {name: read_body([data]) for name, data in broken.items()}
    assert results == dict.fromkeys(broken, (400, "the body is not valid gzip"))


def test_gzip_with_a_changed_byte_never_inflates_to_other_data():
    messages = (
        "the body is not valid gzip",
        "the gzipped body ends too early",
        "the gzipped body continues after its end",
    )
    allowed = (
        DATA,
        *((400, message) for message in messages),
    )  # time, system and flags of the gzip header are not part of the data
    changed = [PACKED[:at] + bytes([PACKED[at] ^ 0xFF]) + PACKED[at + 1 :] for at in range(len(PACKED))]
    assert [at for at, data in enumerate(changed) if read_body([data]) not in allowed] == []
