"""Detects the charset of a text, so that it is shown correctly and written back byte for byte.

UTF-8 is tried first. UTF-16 and UTF-32 are recognized by a byte order mark, or tried if there are NULs. For other
bytes that are not UTF-8, the most likely charset is chosen (`servers.common.charsets`). The guess may be a
close relative of the right charset, but never loses a byte: bytes that can't be restored exactly don't count as text.
New text that a related charset would encode differently is refused until the caller specifies the charset.
"""

import codecs
import re
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

from servers.common.charsets import (
    BYTE_ORDER_MARKS,
    EVIDENCE_BYTES,
    WIDE_CODECS,
    evidence_lines,
    is_damaged,
    likely_charsets,
    rival_codecs,
    wide_codec,
)
from shared.text import quote_name

from ..errors import FilesError


class Charset(NamedTuple):
    """The name of a Python codec, and the byte order mark at the start of the text. `given` is True if the caller
    specified the charset, so that it is not a guess."""

    name: str
    mark: bytes = b""
    given: bool = False


UTF8 = Charset("utf-8")
_CHARSETS_WITH_MARK = tuple(Charset(name, mark) for name, mark in BYTE_ORDER_MARKS)
_CONTROLS = bytes({*range(32)} - {*b"\b\t\n\f\r\x1a\x1b"})
"""Control characters that no text contains."""
_PROBE = "aZ09 \t\n+~{}<&\\"
"""Characters that a charset must encode like ASCII, since lines are counted and parts are read by their bytes."""
_UNUSABLE_CODECS = ("iso2022", "raw-unicode-escape", "raw_unicode_escape", "idna", "punycode", "mbcs", "oem")
"""The beginnings of the names of Python's codecs that no file uses, or that depend on the machine."""
_NON_ASCII = re.compile(rb"[\x80-\xff]")
_SAMPLE_BYTES = 65_536
"""Maximum number of bytes from which a charset is detected."""


def decode(data: bytes, path: str, offset: int = 0, encoding: str | None = None) -> tuple[str, Charset]:
    """Return `data`, which starts at `offset` in the file, as text without its byte order mark; and its charset,
    which is `encoding` if given.

    Raises FilesError with code `not_text`, or `bad_encoding`.
    """
    text = decode_plain(data) if encoding is None else None
    if text is not None:
        return text, UTF8
    if encoding is not None:
        charset = charset_by_name(encoding, path, b"" if offset else data)
    else:
        charset = (None if offset else charset_by_mark(data)) or charset_of(data, path, offset, whole=True)
    return decode_part(data[len(charset.mark) :], charset, path, offset + len(charset.mark))


def decode_plain(data: bytes) -> str | None:
    """Return `data` as text if it is UTF-8 without a byte order mark, as nearly all files are; otherwise None."""
    if 0 in data or data.startswith(codecs.BOM_UTF8):
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def decode_part(data: bytes, charset: Charset, path: str, offset: int = 0, whole: bool = True) -> tuple[str, Charset]:
    """Return the text of `data`, which starts at `offset` in the file, without a byte order mark, and its charset.

    An incomplete last character is left out, unless `data` is the `whole` rest of the file. The returned charset
    differs from `charset` if that is UTF-8 but `data` is not. Raises FilesError with code `not_text`.
    """
    decoder = codecs.getincrementaldecoder(charset.name)()
    try:
        text = decoder.decode(data, whole)
    except UnicodeDecodeError as error:
        if charset != UTF8:
            raise not_text_error(path, offset + error.start, charset) from None
        return decode_part(data, charset_of(data, path, offset, whole), path, offset, whole)
    nul = text.find("\0")
    if nul >= 0:
        raise not_text_error(path, offset + len(text[:nul].encode(charset.name)))
    # In some charsets a character has two codes, only one of which encoding produces. If their lengths differ,
    # positions computed from the encoded text would be wrong.
    if charset.name != UTF8.name and not 0 <= len(data) - len(text.encode(charset.name)) < (1 if whole else 4):
        raise not_text_error(path, offset)
    return text, charset


def require_exact(text: str, charset: Charset, data: bytes, path: str) -> None:
    """Raise FilesError with code `bad_edit` if `text`, decoded from the file's `data`, would not be encoded to the
    same bytes."""
    if charset.name != UTF8.name and charset.mark + text.encode(charset.name) != data:
        reason = f"has characters for which {charset.name} has two codes, and an edit would change them"
        raise FilesError("bad_edit", path, reason, "Specify encoding if the file is in another charset, or append.")


def encode(text: str, charset: Charset, path: str) -> bytes:
    """Return `text` as the bytes of a file in `charset`. Raises FilesError `bad_edit` if that can't encode it."""
    try:
        return charset.mark + text.encode(charset.name)
    except UnicodeEncodeError as error:
        if charset.name.startswith("utf"):  # JSON can encode half a surrogate pair
            raise FilesError("bad_edit", path, "the new text has characters that are not Unicode") from None
        reason = f"the file is {charset.name}, which has no {text[error.start : error.end][:10]!r}"
        advice = "Use characters in that charset, or specify encoding if the file is in another one."
        raise FilesError("bad_edit", path, reason, advice) from None


def require_sure(charset: Charset, text: str, data: bytes, existing_text: str, path: str) -> None:
    """Raise FilesError with code `unsure_charset` if the guess that `data` is in `charset` is too weak to write
    `text`: another charset is likely as well, and encodes a character of `text` that is not in `existing_text`
    differently.
    """
    if charset.given or charset.name.startswith("utf"):
        return
    new_characters = [letter for letter in sorted(set(text)) if not letter.isascii() and letter not in existing_text]
    if not new_characters:
        return
    first = _NON_ASCII.search(data)
    likely = likely_charsets(_evidence(data, first.start())) if first is not None else []
    for other in [likely[0].codec, *rival_codecs(likely)] if likely else []:
        character = _first_difference(new_characters, charset.name, other)
        if character is None:
            continue
        with suppress(UnicodeDecodeError):
            data.decode(other)
            reason = f"it may be {charset.name} or {other}, which have different bytes for {character!r}"
            raise FilesError("unsure_charset", path, reason, "Specify encoding.")


def _first_difference(characters: Iterable[str], name: str, other: str) -> str | None:
    """Return the first of the characters that the two charsets encode differently."""
    for character in characters:
        try:
            if character.encode(other) != character.encode(name):
                return character
        except UnicodeEncodeError:
            continue
    return None


def charset_by_name(encoding: str, path: str, start: bytes = b"", is_new_file: bool = False) -> Charset:
    """Return the charset that the caller names for a file that begins with `start`.

    With `is_new_file`, the charset has a byte order mark if the name implies one. Raises FilesError with code
    `bad_encoding`.
    """
    label = encoding.strip().lower().replace("_", "-")
    if label in ("utf-8-sig", "utf-16", "utf-32"):
        implied = next(
            charset
            for charset in _CHARSETS_WITH_MARK
            if charset.name == {"utf-8-sig": "utf-8"}.get(label, f"{label}-le")
        )
        present = charset_by_mark(start)
        if present is not None and present.name[:6] == implied.name[:6]:
            implied = present
        return implied._replace(mark=implied.mark if is_new_file or present is implied else b"", given=True)
    try:
        name = codecs.lookup(label).name
        if not name.startswith(_UNUSABLE_CODECS) and (name in WIDE_CODECS or _PROBE.encode(name) == _PROBE.encode()):
            present = charset_by_mark(start)
            return Charset(name, present.mark if present is not None and present.name == name else b"", True)
    except (LookupError, UnicodeError, ValueError):
        pass
    reason = f"the charset {quote_name(encoding[:40])} is unknown"
    raise FilesError("bad_encoding", path, reason, "Specify one such as utf-8, utf-16, cp1252, iso8859-2 or gb18030.")


def charset_by_mark(start: bytes) -> Charset | None:
    """Return the charset that the byte order mark at the start of a file indicates."""
    return next((charset for charset in _CHARSETS_WITH_MARK if start.startswith(charset.mark)), None)


def charset_of(data: bytes, path: str, offset: int = 0, whole: bool = False) -> Charset:
    """Return the charset of a text without a byte order mark, judged by `data` at `offset` in the file.

    Unless it is `whole`, `data` may end within a character. If it is not UTF-8, only a sample is examined, so the
    time is bounded. Raises FilesError with code `not_text`.
    """
    position = nul = data.find(0)
    if nul < 0:
        try:
            codecs.utf_8_decode(data, "strict", whole)
        except UnicodeDecodeError as error:
            position = error.start
        else:
            return UTF8
    if nul < 0 and not data[:position].isascii() and is_damaged(data[: position + EVIDENCE_BYTES]):
        raise not_text_error(path, offset + position)
    if nul >= 0:
        name = wide_codec(data)
    else:
        sample = _evidence(data, position)
        has_controls = len(sample.translate(None, _CONTROLS)) < len(sample)
        likely = [] if has_controls else likely_charsets(sample)
        name = likely[0].codec if likely else None
    if name is None:
        raise not_text_error(path, offset + position)
    return Charset(name)


def is_wide(charset: Charset) -> bool:
    """Return True if each character takes more than one byte."""
    return charset.name.startswith(("utf-16", "utf-32"))


def is_known(name: str) -> bool:
    """Return True if this is the name of a charset of text, as `Charset.name` contains it."""
    try:
        return charset_by_name(name, "").name == name
    except FilesError:
        return False


def not_text_error(path: str, offset: int, charset: Charset | None = None) -> FilesError:
    """Return the error for a text that can't be decoded in any charset, or in the given one, because of the byte at
    `offset`."""
    if charset is not None and charset.given:
        return FilesError("not_text", path, f"is not {charset.name} (byte {offset})", "Omit encoding.")
    return FilesError("not_text", path, f"is not text (byte {offset})", "Use read_media_file for binary files.")


def _evidence(data: bytes, at: int) -> bytes:
    """Return lines with non-ASCII bytes, from which the charset is guessed. The first such byte is at `at`.

    If `at` is near the start of `data`, the lines are taken from the start, so that a read and an edit examine the
    same bytes and guess the same charset; otherwise they are taken from the line of `at` on.
    """
    start = 0 if at < _SAMPLE_BYTES else data.rfind(b"\n", at - EVIDENCE_BYTES, at) + 1 or at
    return evidence_lines(data[start : start + _SAMPLE_BYTES])
