"""How a file name is shown: reversible, on one line, in reading order.

File names are bytes. Bytes that are no UTF-8 arrive as lone surrogates (`os.fsdecode`) and are shown as
`\\xff`. Control characters, line separators and bidirectional overrides are shown as escapes too, so that
a name can neither forge a line of a listing nor display backwards. The backslash itself is doubled, which
keeps the form reversible; the URI of an entry remains the form to hand back.

In a result a name may not look like what the server itself says there either: a note in brackets, the mark of a link,
a size, the number of a line. Where it does, one character of it is shown as an escape. In a sentence a name of
several words stands in quotes.
"""

import re
from collections.abc import Callable

_FORGING = re.compile("[\\\\\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_OURS = re.compile(
    r"\A (?=.)"
    r"|\A\[(?=[a-z]+: |\d+ (?:entries|files) )"
    r"|\AN(?=o matches found)"
    r"|[:-](?=\d+[:-] )"
    r"| (?=(?:\((?:link|special|not read: [a-z_]+)\)|\.\.\.|[\d,]+ bytes)\Z)"
)
"""How a name would look like the server's own words, from the character on that is escaped then."""
_BREAKING = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029]|\r(?!\n)")
"""What could make one line of a file look like two, or move the cursor of a terminal. A tab is harmless."""
_WORDS = re.compile(r'[\s"]')
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


def quoted(name: str) -> str:
    """`name` as `displayed`, in quotes where it could be words of the sentence around it."""
    shown = displayed(name)
    return '"' + shown.replace('"', '\\"') + '"' if _WORDS.search(shown) else shown


def unbroken(lines: str) -> str:
    """Lines of files with nothing in them that could make them look like others."""
    return _BREAKING.sub(lambda found: found[0].encode("unicode_escape").decode(), lines)


def told(name: str, uri: Callable[[], str]) -> str:
    """A `displayed` name or path as it stands in a result: where escapes make it another one, with its URI behind it.

    No name can look like that: the URI has more slashes in a row than any path.
    """
    # All that looks like the server's own has a space in it.
    if " " in name:
        name = _OURS.sub(_escaped, name)
    return f"{name} ({uri()})" if "\\" in name else name
