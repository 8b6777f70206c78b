"""Detects the charset of a text: UTF-16 or UTF-32 by trying them, other charsets as a list of likely ones, best
first.

For that list, chardet compares the pairs of bytes in the text with the pairs that are common in the languages of each
charset. It is unreliable for short texts, so faults that a reader would notice at once count as well: letters of two
scripts in one word, or a capital or a symbol within a word. If only a few words have non-ASCII letters and cp1252
decodes them without such a fault, cp1252 comes first, since most such files use it.
"""

import codecs
import re
from functools import cache
from typing import NamedTuple

_WESTERN = "cp1252"
# Charsets that web pages use (https://encoding.spec.whatwg.org/#names-and-labels), and the old ones of DOS and Mac
# OS. The names are chardet's, which calls some charsets by the name of a superset. A short list makes the choice more
# certain.
_SINGLE_BYTE = (
    *("cp1250", "cp1251", _WESTERN, "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp1258", "cp874"),
    *("iso8859-2", "iso8859-5", "iso8859-6", "iso8859-7", "iso8859-8", "iso8859-9", "iso8859-13", "iso8859-15"),
    *("koi8-r", "koi8-u", "cp437", "cp775", "cp850", "cp852", "cp866", "mac-roman", "mac-cyrillic"),
)
_EAST_ASIAN = {
    "cp932": "cp932",
    "euc_jis_2004": "euc_jp",
    "cp949": "cp949",
    "big5hkscs": "big5hkscs",
    "gb18030": "gb18030",
}
_TOO_FEW = 2
"""A text does not identify a language if it has at most this many different words with non-ASCII letters, or if it
has more than `_MANY_WORDS` such words but at most this many different non-ASCII letters."""
_MANY_WORDS = 6
_UNNAMED_CONFIDENCE = 0.002
"""Added to chardet's confidence in each charset, so that a charset that chardet omits remains possible."""
_FAULT_FACTOR = 0.0001
"""The factor by which the confidence is multiplied if there are as many faults as non-ASCII bytes."""
_RIVAL_SHARE = 0.3
"""A charset with at least this share of the best likelihood may also be the right one."""

# The next two patterns match text in which each byte was replaced by its class (see `_classes`). This one matches a
# word with a non-ASCII letter, or with a symbol that may be a letter in another charset:
_WORD = rb"[aA]*[lL][aAlL]*|[aA]+[ps]"
# Faults: an unassigned byte, a symbol within a word, two scripts in a word, a capital after a lowercase letter, an
# accented lowercase letter between capitals, two symbols in a row, three accented letters in a row, and a single
# letter of another script.
_FAULT = (
    rb"!|[aAlLxX][sp](?=[aAlLxX])|(?<=[aA])[xX]|[xX](?=[aA])|(?<=[al])L|(?<=x)X|(?<=[AL]{2})l|(?<=[AL])[lm](?=[AL])"
    rb"|s(?=s)|[lL]{3}|(?<![xXmaA])[xX](?![xXm])"
)
_NON_ASCII_RUN = re.compile(r"[^\x00-\x7f]+")
_MAX_INNER_RUN = 2
"""Up to this many East Asian characters in a row within an ASCII word count as a fault."""
_JOINERS = "’·´–—"
"""Characters that are used within words."""


BYTE_ORDER_MARKS = (  # UTF-32 must come before UTF-16: the mark of UTF-32-LE begins with that of UTF-16-LE
    ("utf-8", codecs.BOM_UTF8),
    ("utf-32-le", codecs.BOM_UTF32_LE),
    ("utf-32-be", codecs.BOM_UTF32_BE),
    ("utf-16-le", codecs.BOM_UTF16_LE),
    ("utf-16-be", codecs.BOM_UTF16_BE),
)
"""Codecs with their byte order marks."""
WIDE_CODECS = ("utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be")
"""Codecs that encode every character in more than one byte, even ASCII ones."""
EVIDENCE_BYTES = 4_000
"""Number of bytes of lines with non-ASCII bytes that suffices to detect a charset."""
_MIN_ASCII = 4
"""Text in UTF-16 or UTF-32 without a space or a line ending must have at least this many ASCII characters."""
_WIDE_SAMPLE = 2_048
"""Number of bytes at the start of a file that are tried as UTF-16 and UTF-32."""


class LikelyCharset(NamedTuple):
    """The Python codec of a charset, and its likelihood. Likelihoods for the same text can be compared."""

    codec: str
    likelihood: float


def wide_codec(start: bytes) -> str | None:
    """Return the codec of UTF-16 or UTF-32 that decodes the start of a file as text, or None.

    The characters must be printable. Numbers in a binary file can look like Chinese, but a text has spaces or line
    endings, or at least half of it is ASCII.
    """
    sample = start[:_WIDE_SAMPLE]
    best, best_length = None, 0
    for name in WIDE_CODECS:
        try:
            text = codecs.getincrementaldecoder(name)().decode(sample)
        except UnicodeDecodeError:
            continue
        ascii_only = text.encode("ascii", "ignore")
        is_printable = all(part.isprintable() for part in text.split())
        is_text = not {32, 10}.isdisjoint(ascii_only) or len(ascii_only) >= max(_MIN_ASCII, len(text) / 2)
        if len(ascii_only) > best_length and is_text and is_printable:
            best, best_length = name, len(ascii_only)
    return best


def is_damaged(data: bytes) -> bool:
    """Return True if `data`, which is not valid UTF-8, is UTF-8 with some damaged characters. At least half of its
    non-ASCII characters must be valid, which does not happen by accident in other charsets."""
    text = data.decode("utf-8", "replace")
    broken = text.count("\ufffd")
    return sum(not character.isascii() for character in text) - broken >= broken


def evidence_lines(data: bytes) -> bytes:
    """Return the first `EVIDENCE_BYTES` bytes of the lines with non-ASCII bytes."""
    lines: list[bytes] = []
    size = 0
    for line in data.splitlines(keepends=True):
        if not line.isascii():
            lines.append(line[: EVIDENCE_BYTES - size])
            size += len(lines[-1])
            if size >= EVIDENCE_BYTES:
                break
    return b"".join(lines)


def likely_charsets(sample: bytes) -> list[LikelyCharset]:
    """Return the possible charsets of `sample`, best first; an empty list if no charset can decode it.

    The sample contains non-ASCII bytes. A few thousand bytes of such lines are enough, and take milliseconds.
    """
    from chardet import detect_all

    detected = detect_all(
        sample, ignore_threshold=True, include_encodings=(*_SINGLE_BYTE, *_EAST_ASIAN), compat_names=False
    )
    confidence = {candidate["encoding"]: candidate["confidence"] + _UNNAMED_CONFIDENCE for candidate in detected}
    high_bytes = len(sample) - len(sample.translate(None, _HIGH))
    likely: list[LikelyCharset] = []
    best = 0.0
    western = None
    for name in sorted((*_SINGLE_BYTE, *_EAST_ASIAN), key=lambda name: -confidence.get(name, _UNNAMED_CONFIDENCE)):
        # Faults only lower the likelihood. So skip a charset if its likelihood is too low even without faults.
        likelihood = confidence.get(name, _UNNAMED_CONFIDENCE)
        if likelihood < best * _RIVAL_SHARE**2 and name != _WESTERN:
            continue
        codec = _EAST_ASIAN.get(name, name)
        try:
            # A sample may end within a character.
            text = codecs.getincrementaldecoder(codec)().decode(sample)
        except UnicodeDecodeError:
            continue
        faults = (
            _count_east_asian_faults(text)
            if name in _EAST_ASIAN
            else len(re.findall(_FAULT, sample.translate(_classes(codec))))
        )
        likely.append(LikelyCharset(codec, likelihood * _FAULT_FACTOR ** (faults / high_bytes)))
        best = max(best, likely[-1].likelihood)
        if name == _WESTERN and not faults:
            western = likely[-1]
    likely.sort(key=lambda candidate: -candidate.likelihood)
    words = {sample[slice(*word.span())] for word in re.finditer(_WORD, sample.translate(_classes(_WESTERN)))}
    letters = set(sample.translate(None, _ASCII))
    if western is not None and (len(words) <= _TOO_FEW or (len(letters) <= _TOO_FEW and len(words) > _MANY_WORDS)):
        likely.remove(western)
        # With little evidence other charsets are rivals as well, so the likelihood is lower than the best one.
        likely.insert(0, LikelyCharset(_WESTERN, best * _RIVAL_SHARE))
    return likely


def rival_codecs(likely: list[LikelyCharset]) -> list[str]:
    """Return the codecs that are nearly as likely as the first one."""
    return [
        candidate.codec for candidate in likely[1:] if candidate.likelihood >= likely[0].likelihood * _RIVAL_SHARE
    ]


_ASCII, _HIGH = bytes(range(128)), bytes(range(128, 256))


@cache
def _classes(codec: str) -> bytes:
    """Return a table for `bytes.translate` that replaces each byte by the class of its character.

    `a` and `A` are ASCII letters, `l` and `L` other Latin letters, `x` and `X` letters of other scripts, `m` marks,
    `p` punctuation, `j` characters that join parts of a word, `s` symbols, `!` controls and unassigned bytes, and a
    space any other ASCII character.
    """
    return "".join(_class_of(bytes([byte]).decode(codec, "replace")) for byte in range(256)).encode()


def _class_of(character: str) -> str:
    import unicodedata

    category = unicodedata.category(character)
    if character.isascii():
        return "aA"[category == "Lu"] if category[0] == "L" else " "
    if character in _JOINERS:
        return "j"
    if category in ("Ll", "Lu", "Lo") and character not in "ªºµ":
        kind = "l" if unicodedata.name(character).startswith("LATIN") else "x"
        return kind.upper() if category == "Lu" else kind
    if category[0] == "M":
        return "m"
    if category[0] in "PZL" or character in "€£°§±×®©½¼¾²³¹":
        return "p"
    return "!" if category == "Cc" or character == "\ufffd" else "s"


def _count_east_asian_faults(text: str) -> int:
    """Count the short runs of non-ASCII characters between letters, and the private-use characters."""
    from unicodedata import category

    count = 0
    for run in _NON_ASCII_RUN.finditer(text):
        start, end = run.span()
        if end - start <= _MAX_INNER_RUN and text[start - 1 : start].isalpha() and text[end : end + 1].isalpha():
            count += 1
        count += sum(category(character) == "Co" for character in run[0])
    return count
