"""What the first bytes of a text say of its charset: a byte order mark, or the zero bytes of UTF-16."""

import codecs
from typing import NamedTuple

__all__ = ["Mark", "mark_of", "start_of_text"]

_SAMPLE = 1_024
_MANY, _FEW = 0.25, 0.05


class Mark(NamedTuple):
    """A codec that the bytes themselves name, and how many of them the mark takes."""

    codec: str
    length: int


_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def mark_of(body: bytes) -> Mark | None:
    """The codec that a mark names, or UTF-16 where every second byte of the start tends to be zero."""
    for sign, codec in _MARKS:
        if body.startswith(sign):
            return Mark(codec, len(sign))
    sample = body[:_SAMPLE]
    half = len(sample) // 2
    if half < 2:
        return None
    even, odd = sample[::2].count(0) / half, sample[1::2].count(0) / half
    if odd >= _MANY and even <= _FEW:
        return Mark("utf-16-le", 0)
    return Mark("utf-16-be", 0) if even >= _MANY and odd <= _FEW else None


def start_of_text(body: bytes, length: int) -> bytes:
    """The first bytes, without a mark, and in UTF-8 where they are UTF-16: so that tags can be sought in them."""
    mark = mark_of(body)
    if mark is None or mark.codec == "utf-8":
        return body[mark.length if mark else 0 :][:length]
    return body[mark.length : length * 2].decode(mark.codec, "replace").encode("utf-8", "replace")
