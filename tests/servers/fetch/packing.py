"""Compressed bodies, and compression bombs."""

import gzip
import sys
import zlib

import brotli

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


PACK = {
    "gzip": lambda data: gzip.compress(data, mtime=0),
    "deflate": zlib.compress,
    "raw deflate": raw_deflate,
    "br": lambda data: brotli.compress(data, quality=5),
    "zstd": zstd.compress,
}
NAMES = {name: name.removeprefix("raw ") for name in PACK}
"""The names for Content-Encoding."""


def bomb(name: str, mebibytes: int) -> bytes:
    """Compresses that many mebibytes of zeros in small pieces."""
    zeros = bytes(1 << 20)
    packer = {
        "gzip": lambda: zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16),
        "deflate": lambda: zlib.compressobj(9),
        "raw deflate": lambda: zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS),
        "br": lambda: brotli.Compressor(quality=5),
        "zstd": lambda: zstd.ZstdCompressor(),
    }[name]()
    add = packer.process if name == "br" else packer.compress
    end = packer.finish if name == "br" else packer.flush
    return b"".join([*(add(zeros) for _ in range(mebibytes)), end()])
