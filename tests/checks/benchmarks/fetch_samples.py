"""What a web server may send: an ordinary article, and what costs those who take it more than those who send it."""

import asyncio
import struct
import zlib
from collections.abc import AsyncIterator, Iterator

from tests.checks.benchmarks.fetch_site import Request, head, reply

TITLE = "A port of the north and its books"
_SENTENCES = (
    "The harbour of Ostenford was dug by hand in the winter of 1843, when the fields lay frozen",
    "Its first keeper counted every barrel that came ashore, and wrote their number on the wall",
    "Later the wall was whitewashed, so that nobody knows today how many barrels there were",
    "Ships of four hundred tons still turn in the inner basin, though the sand takes more of it every year",
    "In spring the town pays two dredgers, which work by night and leave a smell of salt in the streets",
)
PARAGRAPHS = "".join(
    f"<p>{'. '.join(_SENTENCES[number:] + _SENTENCES[:number])}.</p>" for number in range(len(_SENTENCES))
)
BLOCK = 16_777_216
NESTED = 1_500


def article(inside: str = "", *, title: str = TITLE, head: str = "") -> str:
    """A page as there are many: a title, a heading and five paragraphs, and then what is given."""
    return (
        f"<!doctype html><html><head>{head}<title>{title}</title></head><body><main><article>"
        f"<h1>{title}</h1>{PARAGRAPHS}{inside}</article></main></body></html>"
    )


def nested(depth: int = NESTED) -> bytes:
    """Elements in elements: a few kilobytes."""
    return reply(article(f"{'<div>' * depth}the innermost words{'</div>' * depth}"))


def bomb(blocks: int) -> bytes:
    """An answer that unpacks to 16 MiB of zeros for each block, and is a thousandth of that."""
    return b"".join((head(content_encoding="gzip"), *_gzip_of_zeros(blocks)))


def _gzip_of_zeros(blocks: int) -> Iterator[bytes]:
    """One member, whose blocks were packed once: each begins anew after a full flush."""
    packer, zeros = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS), bytes(BLOCK)
    block = packer.compress(zeros) + packer.flush(zlib.Z_FULL_FLUSH)
    checked = 0
    yield b"\x1f\x8b\x08\0\0\0\0\0\x02\xff"
    for _ in range(blocks):
        checked = zlib.crc32(zeros, checked)
        yield block
    yield packer.flush() + struct.pack("<LL", checked, blocks * BLOCK % 2**32)


async def endless(_request: Request) -> AsyncIterator[bytes]:
    """A text that goes on for as long as somebody reads it, at 50 MB a second at most."""
    yield head()
    while True:
        yield PARAGRAPHS.encode() * 200
        await asyncio.sleep(0.01)


async def drip(_request: Request) -> AsyncIterator[bytes]:
    """The same, a byte at a time."""
    yield head()
    while True:
        yield b"x"
        await asyncio.sleep(0.1)


def pdf(text: str) -> bytes:
    """A document of one page with one line."""
    stream = f"BT /F1 24 Tf 72 700 Td ({text}) Tj ET".encode()
    objects = (
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R"
        b" /Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    )
    data, offsets = b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n", []
    for number, one in enumerate(objects, 1):
        offsets.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, one)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    trailer = b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, len(data))
    return data + b"xref\n0 %d\n0000000000 65535 f \n%s" % (len(objects) + 1, table) + trailer


def png() -> bytes:
    """A picture of 16 by 16 black points."""
    rows = zlib.compress(bytes(16 * (1 + 16)))
    parts = ((b"IHDR", struct.pack(">LLBBBBB", 16, 16, 8, 0, 0, 0, 0)), (b"IDAT", rows), (b"IEND", b""))
    chunks = (
        struct.pack(">L", len(data)) + name + data + struct.pack(">L", zlib.crc32(name + data))
        for name, data in parts
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def _checked(data: bytes) -> bytes:
    return struct.pack(">L", zlib.crc32(data))
