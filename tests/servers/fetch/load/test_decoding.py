"""Unpacking bodies of each content encoding in small steps."""

import random
import tracemalloc

import pytest

from servers.fetch.errors import FetchError
from servers.fetch.load.decoding import STEP_BYTES, make_unpacker
from tests.servers.fetch.packing import NAMES, PACK, bomb

every = pytest.mark.parametrize("name", PACK)


def text(size: int) -> bytes:
    """Returns the same text in each run, which compresses to about half its size."""
    return bytes(random.Random(7).choices(b"abcdefghijklmnop", k=size))


def unpack(encoding: str, body: bytes, chunk: int = 1_000, *, complete: bool = True) -> bytes:
    unpacker = make_unpacker(encoding)
    pieces = [piece for at in range(0, len(body), chunk) for piece in unpacker.feed(body[at : at + chunk])]
    assert unpacker.is_complete() == complete
    return b"".join(pieces)


@every
def test_each_encoding_is_unpacked(name: str) -> None:
    for size in (0, 1, STEP_BYTES, STEP_BYTES + 1, 300_000):
        for whole in (text(size), bytes(size)):
            packed = PACK[name](whole)
            assert [unpack(NAMES[name], packed, chunk) == whole for chunk in (1_000, 1_000_000)] == [True] * 2
    whole = text(300)
    assert unpack(NAMES[name], PACK[name](whole), 1) == whole
    assert unpack(NAMES[name], b"") == b""  # an empty body is not compressed


@every
def test_a_body_that_ends_early_is_incomplete(name: str) -> None:
    for left_out in (1, 5, 200):
        arrived = unpack(NAMES[name], PACK[name](text(5_000))[:-left_out], complete=False)
        assert text(5_000).startswith(arrived)


@every
def test_a_damaged_body_is_an_error(name: str) -> None:
    packed = bytearray(PACK[name](text(50_000)))
    packed[2:2_000] = b"\xff" * 1_998
    with pytest.raises(FetchError) as caught:
        unpack(NAMES[name], bytes(packed))
    assert caught.value.code == "bad_response"


@pytest.mark.parametrize("name", ["gzip", "zstd"])
def test_concatenated_members_are_one_body(name: str) -> None:
    pack = PACK[name]
    assert unpack(name, pack(b"one") + pack(b"") + pack(b"two")) == b"onetwo"


def test_encoding_names_without_effect_are_ignored() -> None:
    assert [unpack(name, b"one") for name in ("utf-8", "none", "identity", "UTF-8, none")] == [b"one"] * 4
    assert unpack("utf-8, gzip", PACK["gzip"](b"one")) == b"one"


def test_undeclared_gzip_is_unpacked() -> None:
    packed = PACK["gzip"](b"whole")
    assert [unpack(name, packed, chunk) for name in ("", "identity") for chunk in (1, 1_000)] == [b"whole"] * 4
    assert unpack("gzip", PACK["gzip"](packed)) == b"whole"
    assert [unpack("", body, 1) for body in (b"\x1f\x8b other", b"", b"x")] == [b"\x1f\x8b other", b"", b"x"]


def test_bytes_after_gzip_are_ignored() -> None:
    assert unpack("gzip", PACK["gzip"](b"one") + bytes(5_000)) == b"one"


def test_two_nested_encodings_are_unpacked() -> None:
    packed = PACK["br"](PACK["gzip"](b"whole"))
    assert {unpack(named, packed) for named in ("gzip, br", "GZIP,,identity , br", "x-gzip,br")} == {b"whole"}


@pytest.mark.parametrize("named", ["gzip, gzip, gzip", "br, zstd, gzip, deflate"])
def test_three_nested_encodings_are_refused(named: str) -> None:
    with pytest.raises(FetchError, match="more than 2 times"):
        make_unpacker(named)


@pytest.mark.parametrize("named", ["compress", "gzip, aes128gcm", "gzip;q=1", "dcb"])
def test_an_encoding_outside_accept_encoding_is_refused(named: str) -> None:
    with pytest.raises(FetchError) as caught:
        make_unpacker(named)
    assert caught.value.code == "bad_response"


@every
def test_a_compression_bomb_is_unpacked_in_small_steps(name: str) -> None:
    packed = bomb(name, 16)
    tracemalloc.start()
    try:
        size = 0
        for piece in make_unpacker(NAMES[name]).feed(packed):
            assert len(piece) <= 2 * STEP_BYTES
            size += len(piece)
            if size > 4_000_000:
                break
        # The memory of the decoders themselves. That of brotli is not traced, and is bounded by its window.
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()
