"""Decompresses a body in small steps, so that a decompression bomb never fills memory.

Each decoder yields about `STEP_BYTES` bytes at a time and continues only when they have been consumed, so a caller
that counts the bytes can stop at any point.
"""

import sys
import zlib
from collections.abc import Iterator
from typing import Protocol

import brotli

from servers.common.html.tree import names_in

from ..errors import FetchError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

__all__ = ["ACCEPT_ENCODING", "Unpacker", "make_unpacker"]

ACCEPT_ENCODING = "gzip, deflate, br, zstd"
STEP_BYTES = 65_536
"""Maximum number of bytes from one step; with brotli, 1.5 times as many."""
_COMPRESSIONS = names_in("aes128gcm br compress dcb dcz deflate exi gzip pack200-gzip x-compress x-gzip zstd")
"""The names of encodings in IANA's registry, without `identity`."""
MAX_LAYERS = 2
"""Maximum number of nested encodings."""
ZSTD_WINDOW_LOG = 23
"""8 MiB, the largest window that RFC 9659 allows in HTTP."""
_GZIP = b"\x1f\x8b\x08"
"""The first bytes of a gzip file, with the only method of compression that exists (RFC 1952, 2.3)."""


class Decoder(Protocol):
    """Decoder for one encoding of one body."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the decompressed `data` in pieces of about `STEP_BYTES`. Must be exhausted before the next call."""
        ...

    def is_complete(self) -> bool:
        """Return True if the body may end here."""
        ...


def _inflate(inner: "zlib._Decompress", data: bytes) -> Iterator[bytes]:
    # After a full piece, there may be more output although all input has been consumed.
    is_full = True
    while (data or is_full) and not inner.eof:
        piece = inner.decompress(data, STEP_BYTES)
        yield piece
        data, is_full = inner.unconsumed_tail, len(piece) == STEP_BYTES


class Gzip:
    """gzip data, which consists of one or more members. Data after the last member is ignored, as in browsers."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(zlib.MAX_WBITS | 16)
        self._member_count = 0
        self._has_begun = False
        self._is_done = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        while data and not self._is_done:
            if not self._has_begun and self._member_count and data[0] != 0x1F:
                self._is_done = True
                return
            self._has_begun = True
            yield from _inflate(self._member, data)
            data = b""
            if self._member.eof:
                data = self._member.unused_data
                self._member = zlib.decompressobj(zlib.MAX_WBITS | 16)
                self._member_count += 1
                self._has_begun = False

    def is_complete(self) -> bool:
        return self._is_done or not self._has_begun


class Deflate:
    """deflate data, with a zlib header as in the standard, or without it, as some servers send the data."""

    def __init__(self) -> None:
        self._head = b""
        self._inner: zlib._Decompress | None = None

    def feed(self, data: bytes) -> Iterator[bytes]:
        if self._inner is None:
            data = self._head = self._head + data
            if len(data) < 2:
                return
            has_header = data[0] & 0x0F == 8 and int.from_bytes(data[:2], "big") % 31 == 0
            self._inner = zlib.decompressobj(zlib.MAX_WBITS if has_header else -zlib.MAX_WBITS)
        if not self._inner.eof:
            yield from _inflate(self._inner, data)

    def is_complete(self) -> bool:
        return not self._head if self._inner is None else self._inner.eof


class Brotli:
    """br (Brotli) data, with windows of at most 16 MiB."""

    def __init__(self) -> None:
        self._inner = brotli.Decompressor()
        self._has_begun = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        if self._inner.is_finished():
            return
        self._has_begun = True
        # The decompressor says that it can accept more data once its input is used up, even if it still has output.
        is_full = True
        while is_full or not self._inner.can_accept_more_data():
            piece = self._inner.process(data, output_buffer_limit=STEP_BYTES)
            yield piece
            data, is_full = b"", len(piece) >= STEP_BYTES

    def is_complete(self) -> bool:
        return not self._has_begun or bool(self._inner.is_finished())


class Zstandard:
    """zstd data, which consists of one or more frames."""

    def __init__(self) -> None:
        self._frame = self._make_decompressor()
        self._has_begun = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        while data or not self._frame.needs_input:
            self._has_begun = True
            yield self._frame.decompress(data, STEP_BYTES)
            data = b""
            if self._frame.eof:
                data = self._frame.unused_data
                self._frame = self._make_decompressor()
                self._has_begun = False

    def is_complete(self) -> bool:
        return not self._has_begun

    def _make_decompressor(self) -> zstd.ZstdDecompressor:
        return zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: ZSTD_WINDOW_LOG})


class UndeclaredGzip:
    """Unpacks gzip that no header declares, such as the file `sitemap.xml.gz`; leaves any other body unchanged."""

    def __init__(self) -> None:
        self._head = b""
        self._inner: Gzip | None = None
        self._is_plain = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        if self._inner is None and not self._is_plain:
            data = self._head = self._head + data
            if len(data) < len(_GZIP) and _GZIP.startswith(data):
                return
            if data.startswith(_GZIP):
                self._inner = Gzip()
            else:
                self._is_plain = True
        if self._inner is None:
            yield data
        else:
            yield from self._inner.feed(data)

    def is_complete(self) -> bool:
        return self._is_plain or not self._head if self._inner is None else self._inner.is_complete()


DECODERS: dict[str, type[Gzip] | type[Deflate] | type[Brotli] | type[Zstandard]] = {
    "gzip": Gzip,
    "x-gzip": Gzip,
    "deflate": Deflate,
    "br": Brotli,
    "zstd": Zstandard,
}


class Unpacker:
    """Undoes all encodings of one body, the last one first. Raises FetchError with code `bad_response` if the body is
    damaged."""

    def __init__(self, decoders: list[Decoder]) -> None:
        self._decoders = decoders

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the decompressed `data` in small pieces. Must be exhausted before the next call."""
        try:
            yield from self._decode(data, self._decoders)
        except (zlib.error, brotli.error, zstd.ZstdError, EOFError):
            raise FetchError("bad_response", "the compressed body is damaged, or has another encoding") from None

    def is_complete(self) -> bool:
        """Return True if the body may end here."""
        return all(decoder.is_complete() for decoder in self._decoders)

    def _decode(self, data: bytes, decoders: list[Decoder]) -> Iterator[bytes]:
        if not decoders:
            yield data
            return
        for piece in decoders[0].feed(data):
            if piece:
                yield from self._decode(piece, decoders[1:])


def make_unpacker(content_encoding: str) -> Unpacker:
    """Return the unpacker for a `Content-Encoding`. Raises FetchError with code `bad_response` for an encoding that
    was not requested.

    Names that are not encodings, such as `utf-8` and `none`, are ignored, as browsers do. gzip is unpacked even if it
    is not declared.
    """
    names = [part.strip().lower() for part in content_encoding.split(",")]
    names = [name for name in names if name.partition(";")[0].strip() in _COMPRESSIONS]
    if len(names) > MAX_LAYERS:
        raise FetchError("bad_response", f"the body is compressed more than {MAX_LAYERS} times over")
    if not all(name in DECODERS for name in names):
        raise FetchError("bad_response", "the body has an encoding that was not requested")
    return Unpacker([*(DECODERS[name]() for name in reversed(names)), UndeclaredGzip()])
