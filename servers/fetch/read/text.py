"""Decodes a page's bytes to text.

The order is the same as in browsers (https://html.spec.whatwg.org/#determining-the-character-encoding): a byte order
mark, the Content-Type, the declaration in the page. But a browser trusts each of them, and shows garbage if it is
wrong. This module also examines the bytes. Text is hardly ever UTF-8 by accident, so valid UTF-8 is decoded as such
even if a one-byte charset is declared. If too many bytes that are declared as UTF-8 are invalid, another charset is
tried.
"""

import re

from servers.common.charsets import is_damaged

from .charset_guesses import guess_codec
from .charsets import UTF8, WESTERN, Charset, charset_of_codec, find_charset, find_mark
from .page import Page, Source, describe

_DECLARATION_BYTES = 2_048
"""Number of bytes that are searched for a declaration; browsers search 1,024."""
_XML = re.compile(rb"\s*<\?xml\s[^>]*?encoding\s*=\s*[\"']([A-Za-z0-9._:-]+)")
_COMMENT = re.compile(rb"<!--.*?(?:-->|\Z)", re.DOTALL)
_META = re.compile(rb"<meta[\s/][^>]*", re.IGNORECASE)
_META_CHARSET = re.compile(rb"[\s/\"']charset\s*=\s*[\"']?\s*([A-Za-z0-9._:-]+)", re.IGNORECASE)
_META_TYPE = re.compile(rb"http-equiv\s*=\s*[\"']?\s*content-type", re.IGNORECASE)
_CONTENT_CHARSET = re.compile(rb"charset\s*=\s*[\"']?\s*([A-Za-z0-9._:-]+)", re.IGNORECASE)
_ISO_2022_JP = charset_of_codec("iso2022_jp")
_JAPANESE_ESCAPE = re.compile(rb"\x1b\$[@B]")
"""The start of two-byte characters in ISO-2022-JP, where all bytes are ASCII."""
_MULTI_BYTE = {"utf-16le", "utf-16be", "gbk", "gb18030", "big5", "shift_jis", "euc-jp", "euc-kr", "iso-2022-jp"}
# U+F780 to U+F7FF represent the bytes 0x80 to 0xFF.
_USER_DEFINED = {byte: 0xF700 + byte for byte in range(0x80, 0x100)}


def decode(body: bytes, declared: str | None, media_type: str, url: str = "") -> tuple[str, str]:
    """Return the text, and the name of its charset in the standard.

    `declared` is the charset in the Content-Type; `url` helps to guess if no charset is declared. A byte that can't
    be decoded becomes U+FFFD.
    """
    mark = find_mark(body)
    if mark is not None:
        return body[mark.length :].decode(mark.codec, "replace"), mark.codec.replace("16-", "16")
    charset = find_charset(declared or "") or _find_declared_charset(body[:_DECLARATION_BYTES], media_type)
    if charset is not None and charset.name in _MULTI_BYTE:
        for candidate in (charset, UTF8):
            decoded = _decode_strictly(body, candidate)
            if decoded is not None:
                return decoded, candidate.name
        return _decode_leniently(body, charset)
    if (
        charset is None
        and _JAPANESE_ESCAPE.search(body)
        and (japanese := _decode_strictly(body, _ISO_2022_JP)) is not None
    ):
        return japanese, _ISO_2022_JP.name
    utf8 = _decode_strictly(body, UTF8)
    if utf8 is not None:
        # ASCII is the same in most charsets, so ASCII text has the declared charset.
        return utf8, (charset if charset is not None and utf8.isascii() else UTF8).name
    if charset == UTF8:
        if is_damaged(body):
            return body.decode("utf-8", "replace"), UTF8.name
        # The Content-Type is wrong, so the page's own declaration is the better evidence.
        charset = _find_declared_charset(body[:_DECLARATION_BYTES], media_type)
        if charset == UTF8 or (charset is not None and _decode_strictly(body, charset) is None):
            charset = None
    if charset is None:
        codec = guess_codec(body, url)
        charset = WESTERN if codec is None else charset_of_codec(codec)
    return _decode_leniently(body, charset)


def _find_declared_charset(start: bytes, media_type: str) -> Charset | None:
    """Return the charset that the page itself declares."""
    match = _XML.match(start)
    charset = find_charset(match[1].decode("ascii")) if match else None
    if charset is None and media_type in {"text/html", "application/xhtml+xml"}:
        for tag in _META.findall(_COMMENT.sub(b"", start)):
            match = _META_CHARSET.search(tag) if not _META_TYPE.search(tag) else _CONTENT_CHARSET.search(tag)
            charset = find_charset(match[1].decode("ascii")) if match else None
            if charset is not None:
                break
    # A page whose declaration is readable as ASCII can't be in UTF-16 (HTML Standard, 13.2.3.2).
    if charset is not None and charset.name.startswith("utf-16"):
        return UTF8
    return WESTERN if charset is not None and charset.name == "x-user-defined" else charset


def _decode_strictly(body: bytes, charset: Charset) -> str | None:
    try:
        return body.decode(charset.codec)
    except UnicodeDecodeError:
        return None


def _decode_leniently(body: bytes, charset: Charset) -> tuple[str, str]:
    text = body.decode(charset.codec, "replace")
    return (text.translate(_USER_DEFINED) if charset.name == "x-user-defined" else text), charset.name


def read_text(source: Source) -> Page:
    """Return the text without parsing or running any of it. XML entities are not resolved."""
    text, charset = decode(source.body, source.charset, source.kind.media_type, source.url)
    if source.format == "metadata":
        facts = describe(kind="text", media_type=source.kind.media_type, charset=charset, characters=len(text))
        return Page(facts, "text", charset)
    return Page(text, "text", charset)
