"""The engine that matches patterns: RE2, which takes time proportional to the text for every pattern.

Its syntax is that of most languages, without backreferences and lookaround, which no linear-time engine supports.
Text is bytes, interpreted as UTF-8; invalid bytes match only themselves. Case-sensitive literal text needs no engine,
since a byte search is faster.
"""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from servers.filesystem.errors import FilesError
from shared.text import quoted

_EACH_LINE = b"(?m)"
"""Makes `^` and `$` match at each line."""
_NOTHING = r"[^\x00-\x{10ffff}]"
"""Matches no text."""
MAX_LENGTH = 4_096
"""Maximum length of a pattern, in characters."""
_SPECIAL = frozenset(r"\.^$|?*+()[]{}")
_OF_TEXT = re.compile(r"\\[AzC]|\(\?")
"""Syntax that may match only at the ends of a text, or may match any byte; and groups, which can set such a mode."""
_LINE_END = re.compile(r"\n|(?<!\\)(?:\\\\)*\\n")


class Query(NamedTuple):
    """The text to search for: a regular expression, or with `literal` plain text."""

    pattern: str
    literal: bool = False
    ignore_case: bool = False
    multiline: bool = False
    """True if a match may span lines. Otherwise nothing in the pattern matches a line ending."""


class Matched(Protocol):
    """A match, as the engine returns it."""

    def span(self) -> tuple[int, int]:
        """Return the start and end of the match, in bytes."""


class Matcher(Protocol):
    """A compiled pattern."""

    def search(self, text: bytes, pos: int = 0, endpos: int | None = None) -> Matched | None:
        """Return the first match between the two positions."""


class _Span(NamedTuple):
    start: int
    end: int

    def span(self) -> tuple[int, int]:
        return self.start, self.end


class _Plain:
    """The matcher for plain text."""

    def __init__(self, text: bytes) -> None:
        self._text = text

    def search(self, text: bytes, pos: int = 0, endpos: int | None = None) -> Matched | None:
        begin = text.find(self._text, pos, endpos)
        return None if begin < 0 else _Span(begin, begin + len(self._text))


def compiled(query: Query) -> Matcher:
    """Return the matcher for a query. Raises FilesError with code `bad_pattern`, or `not_installed` if the engine is
    missing."""
    pattern, literal = query.pattern, query.literal
    if not pattern or len(pattern) > MAX_LENGTH:
        raise _bad(pattern, f"a pattern must have 1 to {MAX_LENGTH} characters")
    if not query.multiline and ("\n" in pattern if literal else _LINE_END.search(pattern)):
        raise FilesError("bad_pattern", "", "the pattern contains a line break", "Set multiline.")
    try:
        encoded = pattern.encode()
    except UnicodeEncodeError:
        raise _bad(pattern, "contains characters that text can't have") from None
    if not query.ignore_case and (literal or _SPECIAL.isdisjoint(pattern)):
        return _Plain(encoded)
    return _regex(query, encoded)


def is_by_line(query: Query) -> bool:
    """Return True if a match in a line depends only on that line and its line ending, not on the rest of the text."""
    return not query.multiline and (query.literal or _OF_TEXT.search(query.pattern) is None)


def _regex(query: Query, pattern: bytes) -> Matcher:
    try:
        import re2
    except ImportError:
        reason = "searching for anything but plain text needs the package google-re2"
        raise FilesError("not_installed", "", reason, "Install the extra 'filesystem'.") from None
    options: Any = re2.Options()
    options.literal = query.literal
    options.case_sensitive = not query.ignore_case
    options.never_nl = not query.multiline
    options.never_capture = True
    options.log_errors = False
    try:
        matcher: Matcher = re2.compile(pattern if query.literal else _EACH_LINE + pattern, options)
    except re2.error as error:
        message: bytes = error.args[0] if error.args else b""
        reason = quoted(message.replace(_EACH_LINE, b"").decode("utf-8", "replace")[:200])
        raise _bad(query.pattern, f"is not a valid RE2 expression: {reason}") from None
    # The module would cache the last 128 patterns, each with up to 8 MiB of automaton states.
    re2.purge()
    return matcher


def any_line_of(expressions: Sequence[str]) -> Matcher | None:
    """Return a matcher of texts that have a line matching one of the expressions; None if the engine rejects them."""
    import re2

    options: Any = re2.Options()
    options.never_nl = options.never_capture = True
    options.log_errors = False
    try:
        matcher: Matcher = re2.compile(_EACH_LINE + ("|".join(expressions) or _NOTHING).encode(), options)
    except re2.error:
        return None
    re2.purge()
    return matcher


def _bad(pattern: str, reason: str) -> FilesError:
    suggestion = "RE2 has no backreferences and no lookaround; set literal to search for plain text."
    return FilesError("bad_pattern", "", f"pattern {quoted(pattern[:80])}: {reason}", suggestion)
