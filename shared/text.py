"""Safe display of untrusted text, and small helpers for messages."""

import os
import re
from collections.abc import Collection, Iterable

_DECEPTIVE = "[\\\\\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
_SPACE_OR_QUOTE = re.compile(r'[\s"]')
_SHORT_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}

_WORDS_AT_ONCE = 256
"""Number of random words that are made with one system call."""
_unused_words: list[str] = []
"""Random words that have not been used yet. Several threads take them, each with `pop`, which is atomic."""


def is_unicode(text: str) -> bool:
    """Return True if the text can be encoded as UTF-8. Text with lone surrogates can't; Python uses them for bytes of
    file names that are not UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def escape(text: str) -> str:
    """Return the text on one line, with unprintable characters, including line endings, as escapes."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def plain(text: str) -> str:
    """Return untrusted `text` for a terminal, with a replacement character for each unprintable one, including line
    endings. Such characters could move the cursor or change colors."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def join_lines(text: str) -> str:
    """Return the text on one line: white space becomes single spaces, and other unprintable characters escapes."""
    return escape(" ".join(text.split()))


def format_count(count: int, noun: str, plural: str = "") -> str:
    """Return a count with its noun, such as "1 file" or "2 files". Give `plural` if it is not the noun with an s."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def make_delimiters(kind: str, description: str) -> tuple[str, str]:
    """Return the lines to put before and after untrusted text. The first contains the `description`.

    Both contain an unpredictable word, so the text between them can't forge the end of the block and continue as if
    it came from the server.
    """
    try:
        word = _unused_words.pop()
    except IndexError:
        # The system call is slow, and takes as long for many words as for one.
        digits = os.urandom(4 * _WORDS_AT_ONCE).hex()
        word, *rest = (digits[start : start + 8] for start in range(0, len(digits), 8))
        _unused_words.extend(rest)
    mark = f"{kind}-{word}"
    return f"<{mark}> {description}", f"</{mark}>"


def code_block(text: str, language: str = "") -> str:
    """Return the text as a Markdown code block, with a fence longer than any in the text (CommonMark, 4.5)."""
    longest = max(map(len, re.findall("`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def nearest(name: str, candidates: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the name among `candidates` that `name` most likely means; None if none is similar."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, list(candidates), 1, cutoff)), None)


def nearest_option(name: str, candidates: Collection[str]) -> str | None:
    """Return the option among `candidates` that `name` most likely means; both are without the leading hyphens. It is
    the most similar option, or the only one that contains all words of `name`, such as `allow-write` for `write`.
    None if there is none."""
    words = set(name.split("-"))
    containing = [option for option in candidates if words <= set(option.split("-")) and not option.startswith("no-")]
    return nearest(name, candidates, 0.75) or (containing[0] if len(containing) == 1 else None)


def escape_match(match: re.Match[str]) -> str:
    """Return the escape for the matched character of a file name."""
    char = match[0]
    if char in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[char]
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    # `\x80` to `\xff` stand for bytes that are not UTF-8, so the characters with these codes get four digits.
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}"


def display_name(name: str) -> str:
    """Return the name of a file for display. It is one line in reading order; different names look different.

    File names are bytes. Those that are not UTF-8 arrive as lone surrogates (`os.fsdecode`) and are shown as `\\xff`.
    Control characters, line separators and bidirectional overrides are shown as escapes too, so that a name can't
    forge a line of a listing or be displayed backwards. A backslash is doubled, so that the original name can be
    derived.
    """
    # Nearly all names are returned here: except for the backslash, all characters to escape are unprintable.
    return name if name.isprintable() and "\\" not in name else re.sub(_DECEPTIVE, escape_match, name)


def quote_name(name: str) -> str:
    """Return `name` as in `display_name`, in quotes if it contains spaces or quotes, so that it can't be mistaken for
    words of the surrounding sentence."""
    displayed = display_name(name)
    return '"' + displayed.replace('"', '\\"') + '"' if _SPACE_OR_QUOTE.search(displayed) else displayed
