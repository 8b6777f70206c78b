"""How a file name is shown: reversible, on one line, in reading order.

File names are bytes. Bytes that are no UTF-8 arrive as lone surrogates (`os.fsdecode`) and are shown as
`\\xff`. Control characters, line separators and bidirectional overrides are shown as escapes too, so that
a name can neither forge a line of a listing nor display backwards. The backslash itself is doubled, which
keeps the form reversible; the URI of an entry remains the form to hand back.
"""

import re

_FORGING = re.compile("[\\\\\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_SHORT = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _escaped(match: re.Match[str]) -> str:
    char = match[0]
    if char in _SHORT:
        return _SHORT[char]
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    # Two-digit escapes above 0x7f stand for raw bytes, so such characters take the long form.
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}"


def displayed(name: str) -> str:
    """`name` safe to print: one line, no undecodable parts, distinct for distinct names."""
    return _FORGING.sub(_escaped, name)
