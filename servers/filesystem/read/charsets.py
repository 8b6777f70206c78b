"""In which charset a text is written, so that it is shown as it was meant and written back byte for byte.

UTF-8 comes first. UTF-16 and UTF-32 show themselves by a byte order mark, or by their NULs; any other charset is
recognised by charset-normalizer, and only where the bytes are not UTF-8. A guess may name a sister of the charset
that was meant, but never one that loses a byte: what can't be turned back into the very same bytes is not text.
"""

import codecs
from typing import TYPE_CHECKING, NamedTuple

from servers.filesystem.errors import FilesError

if TYPE_CHECKING:
    from charset_normalizer import CharsetMatches


class Charset(NamedTuple):
    """The name of a codec, and the byte order mark that stands before the text."""

    name: str
    mark: bytes = b""


UTF8 = Charset("utf-8")
_MARKED = (  # UTF-32 first: its mark begins as that of UTF-16
    Charset("utf-8", codecs.BOM_UTF8),
    Charset("utf-32-le", codecs.BOM_UTF32_LE),
    Charset("utf-32-be", codecs.BOM_UTF32_BE),
    Charset("utf-16-le", codecs.BOM_UTF16_LE),
    Charset("utf-16-be", codecs.BOM_UTF16_BE),
)
_WIDE = ["utf_16_le", "utf_16_be", "utf_32_le", "utf_32_be"]
_WESTERN = "cp1252"
# What files are really written in (https://encoding.spec.whatwg.org/#names-and-labels), and the old ones of DOS and
# Mac OS. The fewer there are, the surer the choice.
_LEGACY = [
    *("cp1250", "cp1251", _WESTERN, "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp1258", "cp874"),
    *("iso8859_2", "iso8859_5", "iso8859_7", "koi8_r", "koi8_u", "cp437", "cp850", "cp855", "cp866"),
    *("mac_roman", "mac_cyrillic"),
    *("cp932", "euc_jp", "cp949", "big5", "gb18030"),
]
_CONTROLS = bytes({*range(32)} - {*b"\b\t\n\f\r\x1a\x1b"})
_SAMPLE = 32_768
_BEFORE = 1_024


def decode(data: bytes, written: str, offset: int = 0) -> tuple[str, Charset]:
    """`data`, which starts at `offset` of the file, as text without its byte order mark, and its charset.

    Raises FilesError `not_text`.
    """
    text = plain(data)
    if text is not None:
        return text, UTF8
    charset = (None if offset else marked(data)) or charset_of(data, written, offset, whole=True)
    return decode_part(data[len(charset.mark) :], charset, written, offset + len(charset.mark))


def plain(data: bytes) -> str | None:
    """`data` as text where it is UTF-8 without a byte order mark, as nearly all files are; else None."""
    if 0 in data or data.startswith(codecs.BOM_UTF8):
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def decode_part(
    data: bytes, charset: Charset, written: str, offset: int = 0, whole: bool = True
) -> tuple[str, Charset]:
    """A part of a text, without its mark, that starts at `offset` of the file; and its charset.

    A character that it ends within is left out, unless it is the `whole` of what follows. The charset is another one
    where the file seemed to be UTF-8 so far and is not. Raises FilesError `not_text`.
    """
    decoder = codecs.getincrementaldecoder(charset.name)()
    try:
        text = decoder.decode(data, whole)
    except UnicodeDecodeError as error:
        if charset != UTF8:
            raise not_text(written, offset + error.start) from None
        return decode_part(data, charset_of(data, written, offset, whole), written, offset, whole)
    nul = text.find("\0")
    if nul >= 0:
        raise not_text(written, offset + len(text[:nul].encode(charset.name)))
    if charset.name != UTF8.name and not data.startswith(text.encode(charset.name)):
        raise not_text(written, offset)
    return text, charset


def encode(text: str, charset: Charset, written: str) -> bytes:
    """`text` as a file in `charset` holds it. Raises FilesError `bad_edit` for what the charset can't hold."""
    try:
        return charset.mark + text.encode(charset.name)
    except UnicodeEncodeError as error:
        if charset.name.startswith("utf"):  # JSON can spell half a surrogate pair
            raise FilesError("bad_edit", written, "the new text holds characters that are no Unicode") from None
        reason = f"the file is {charset.name}, which has no {text[error.start : error.end][:10]!r}"
        raise FilesError("bad_edit", written, reason, "Write it with characters of that charset.") from None


def marked(start: bytes) -> Charset | None:
    """The charset that the byte order mark at the start of a file names."""
    return next((charset for charset in _MARKED if start.startswith(charset.mark)), None)


def charset_of(data: bytes, written: str, offset: int = 0, whole: bool = False) -> Charset:
    """The charset of a text without a mark that `data`, at `offset` of the file, is a part of.

    Unless it is `whole`, it may end within a character. Where it is no UTF-8 a sample decides, so the time is
    bounded. Raises FilesError `not_text`.
    """
    at = nul = data.find(0)
    if nul < 0:
        try:
            codecs.utf_8_decode(data, "strict", whole)
        except UnicodeDecodeError as error:
            at = error.start
        else:
            return UTF8
    if nul < 0 and not data[:at].isascii():
        # Nobody writes UTF-8 by accident, so this one is damaged.
        raise not_text(written, offset + at)
    name = _wide(data[:_SAMPLE]) if nul >= 0 else _legacy(data, at)
    if name is None:
        raise not_text(written, offset + at)
    return Charset(name)


def is_wide(charset: Charset) -> bool:
    """Whether a line end takes more than one byte."""
    return charset.name.startswith(("utf-16", "utf-32"))


def is_known(name: str) -> bool:
    """Whether this is the name of a charset that a text can be found to be in."""
    return name == UTF8.name or name.replace("-", "_") in (*_WIDE, *_LEGACY)


def not_text(written: str, offset: int) -> FilesError:
    """The error for what no charset explains, first of all the byte at `offset`."""
    return FilesError("not_text", written, f"is not text (byte {offset})", "Use read_media_file for binary files.")


def _wide(sample: bytes) -> str | None:
    best = _matches(sample, _WIDE).best()
    # Numbers of a binary file can look like Chinese, but a text has spaces or line ends.
    return _codec(best.encoding) if best is not None and not {" ", "\n"}.isdisjoint(str(best)) else None


def _legacy(data: bytes, at: int) -> str | None:
    # Around the first byte that is no UTF-8, and of whole lines where they are not too long.
    start = data.rfind(b"\n", max(at - _BEFORE, 0), at) + 1 or at
    sample = data[start : start + _SAMPLE]
    if len(sample) == _SAMPLE:
        sample = sample[: sample.rfind(b"\n") + 1] or sample
    if len(sample.translate(None, _CONTROLS)) < len(sample):
        return None
    found = _matches(sample, _LEGACY)
    best = found.best()
    if best is None:
        return _codec(_WESTERN)
    # A few letters with accents look the same to many charsets: then it is the one most files are in.
    even = [one for one in found if (one.chaos, one.coherence) == (best.chaos, best.coherence)]
    return _codec(_WESTERN if any(_WESTERN in one.could_be_from_charset for one in even) else best.encoding)


def _matches(sample: bytes, candidates: list[str]) -> "CharsetMatches":
    from charset_normalizer import from_bytes

    return from_bytes(sample, cp_isolation=candidates)


def _codec(name: str) -> str:
    return codecs.lookup(name).name
