"""Finds charsets by their names on the web, as browsers interpret them (https://encoding.spec.whatwg.org), and by the
first bytes of a page: a byte order mark, or the zero bytes of UTF-16.

Python knows most of the names. But on the web, many names have come to mean a later, larger charset, and some of
Python's codecs are not for text at all, so only the charsets listed in this file are used.

The tables accept every label that browsers accept. webencodings contains the standard's table too, but knows none of
Python's other names, decodes GBK with Python's codec instead of GB 18030 as in the standard, and has no types: two
thirds of this file would still be needed.
"""

import codecs
from encodings import normalize_encoding
from encodings.aliases import aliases
from typing import NamedTuple

_SAMPLE_BYTES = 1_024
"""Number of bytes in which zero bytes are counted."""
_MIN_UTF16_SHARE, _MAX_OTHER_SHARE = 0.25, 0.05
"""Shares of zero bytes in UTF-16 text: the minimum at every second position, and the maximum at the others."""
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class Charset(NamedTuple):
    """A charset: its name in the standard, and the Python codec that decodes it."""

    name: str
    codec: str


UTF8 = Charset("utf-8", "utf-8")
WESTERN = Charset("windows-1252", "cp1252")
_GBK = Charset("gbk", "gb18030")
_BIG5 = Charset("big5", "big5hkscs")
_JAPANESE = Charset("shift_jis", "cp932")
_KOREAN = Charset("euc-kr", "cp949")
_THAI = Charset("windows-874", "cp874")
_TURKISH = Charset("windows-1254", "cp1254")
_CHARSETS = {
    "utf_8": UTF8,
    "utf_16": Charset("utf-16le", "utf-16-le"),
    "utf_16_le": Charset("utf-16le", "utf-16-le"),
    "utf_16_be": Charset("utf-16be", "utf-16-be"),
    **dict.fromkeys(["ascii", "latin_1", "iso8859_1", "cp1252"], WESTERN),
    **dict.fromkeys(["iso8859_9", "cp1254"], _TURKISH),
    **dict.fromkeys(["iso8859_11", "tis_620", "cp874"], _THAI),
    **{f"iso8859_{n}": Charset(f"iso-8859-{n}", f"iso8859-{n}") for n in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)},
    **{f"cp125{n}": Charset(f"windows-125{n}", f"cp125{n}") for n in (0, 1, 3, 5, 6, 7, 8)},
    "cp866": Charset("ibm866", "cp866"),
    "koi8_r": Charset("koi8-r", "koi8-r"),
    "koi8_u": Charset("koi8-u", "koi8-u"),
    "mac_roman": Charset("macintosh", "mac-roman"),
    "mac_cyrillic": Charset("x-mac-cyrillic", "mac-cyrillic"),
    **dict.fromkeys(["gb2312", "gbk"], _GBK),
    "gb18030": Charset("gb18030", "gb18030"),
    **dict.fromkeys(["big5", "big5hkscs", "cp950"], _BIG5),
    **dict.fromkeys(["shift_jis", "cp932"], _JAPANESE),
    "euc_jp": Charset("euc-jp", "euc-jp"),
    "iso2022_jp": Charset("iso-2022-jp", "iso2022-jp"),
    **dict.fromkeys(["euc_kr", "cp949"], _KOREAN),
    # Browsers don't decode these, since they were used to hide scripts. This server runs no scripts.
    "hz": Charset("hz-gb-2312", "hz"),
    "iso2022_kr": Charset("iso-2022-kr", "iso2022-kr"),
    "x_user_defined": Charset("x-user-defined", "latin-1"),
}
# Names that Python does not know, or uses for another charset.
_NAMES = {
    **dict.fromkeys(["unicode_1_1_utf_8", "unicode11utf8", "unicode20utf8", "x_unicode20utf8"], "utf_8"),
    **dict.fromkeys(["ucs_2", "unicode", "csunicode", "iso_10646_ucs_2", "unicodefeff", "utf_16le"], "utf_16_le"),
    **dict.fromkeys(["unicodefffe", "utf_16be"], "utf_16_be"),
    **dict.fromkeys(["asmo_708", "csiso88596e", "csiso88596i", "iso_8859_6_e", "iso_8859_6_i"], "iso8859_6"),
    **dict.fromkeys(["sun_eu_greek"], "iso8859_7"),
    **dict.fromkeys(["csiso88598e", "csiso88598i", "iso_8859_8_e", "iso_8859_8_i", "logical", "visual"], "iso8859_8"),
    **dict.fromkeys(["koi", "koi8"], "koi8_r"),
    "koi8_ru": "koi8_u",
    **dict.fromkeys(["csmacintosh", "mac", "x_mac_roman"], "mac_roman"),
    **dict.fromkeys(["x_mac_cyrillic", "x_mac_ukrainian"], "mac_cyrillic"),
    "csisolatin9": "iso8859_15",
    **dict.fromkeys(["dos_874", "windows_874"], "cp874"),
    **dict.fromkeys(["x_gbk", "csgb2312", "gb_2312", "gb_2312_80"], "gbk"),
    **dict.fromkeys(["cn_big5", "x_x_big5"], "big5"),
    **dict.fromkeys(["cseucpkdfmtjapanese", "x_euc_jp"], "euc_jp"),
    **dict.fromkeys(["windows_31j", "x_sjis"], "shift_jis"),
    **dict.fromkeys(
        ["cseuckr", "csksc56011987", "iso_ir_149", "ks_c_5601_1989", "ksc_5601", "windows_949"], "euc_kr"
    ),
    **{f"iso8859{n}": f"iso8859_{n}" for n in range(1, 17)} | {f"iso_8859_{n}": f"iso8859_{n}" for n in range(1, 17)},
    **{f"x_cp125{n}": f"cp125{n}" for n in range(9)},
}


def find_charset(label: str) -> Charset | None:
    """Return the charset that a name means on the web; None for an unknown name."""
    if not label.isascii() or len(label) > 50:
        return None
    name = normalize_encoding(label.strip().lower()).replace(".", "_")
    name = _NAMES.get(name, name)
    return _CHARSETS.get(aliases.get(name, name))


def charset_of_codec(codec: str) -> Charset:
    """Return the charset of a Python codec."""
    return _CHARSETS[codec]


class Mark(NamedTuple):
    """A codec that the first bytes of a page identify, and the length of their byte order mark; 0 if there is
    none."""

    codec: str
    length: int


def find_mark(body: bytes) -> Mark | None:
    """Return the codec of the byte order mark, or UTF-16 if nearly every second byte at the start is zero."""
    for sign, codec in _MARKS:
        if body.startswith(sign):
            return Mark(codec, len(sign))
    sample = body[:_SAMPLE_BYTES]
    half = len(sample) // 2
    if half < 2:
        return None
    even, odd = sample[::2].count(0) / half, sample[1::2].count(0) / half
    if odd >= _MIN_UTF16_SHARE and even <= _MAX_OTHER_SHARE:
        return Mark("utf-16-le", 0)
    return Mark("utf-16-be", 0) if even >= _MIN_UTF16_SHARE and odd <= _MAX_OTHER_SHARE else None


def read_start(body: bytes, length: int) -> bytes:
    """Return the first bytes of a page, to be searched for tags: without a byte order mark, and UTF-16 as UTF-8."""
    mark = find_mark(body)
    if mark is None or mark.codec == "utf-8":
        return body[mark.length if mark else 0 :][:length]
    return body[mark.length : length * 2].decode(mark.codec, "replace").encode("utf-8", "replace")
