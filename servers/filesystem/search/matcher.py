"""The engine that matches patterns: RE2, which takes time proportional to the text for every pattern.

Its syntax is common to most languages, but without backreferences and lookaround, which no linear-time engine
supports. Text is bytes, interpreted as UTF-8; invalid bytes match only themselves. Case-sensitive literal text is
searched without the engine. Only in a large file the engine searches for it, beginning with its rarest byte, which is
up to 30 times as fast. There, an expression is tried only in lines that contain the literal text that it requires.
"""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from shared.text import quote_name

from ..errors import FilesError

_EACH_LINE = b"(?m)"
"""Makes `^` and `$` match at each line."""
_MATCH_NOTHING = r"[^\x00-\x{10ffff}]"
"""Matches no text."""
MAX_LENGTH = 4_096
"""Maximum length of a pattern, in characters."""
_SPECIAL = frozenset(r"\.^$|?*+()[]{}")
_WHOLE_TEXT_SYNTAX = re.compile(r"\\[AzC]|\(\?")
"""Syntax whose matches may depend on other lines: `\\A`, `\\z`, `\\C`, and groups, which can set modes."""
_UNREAD_SYNTAX = re.compile(r"\\[^dDwWsSbB\W]|\\$|\(\?|[{|]")
"""Syntax that `_required_text` does not read: escapes for single characters, modes, counts and alternatives."""
_PART = re.compile(
    r"(?P<skipped>\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]|\\[dDwWsSbB]|[.^$])|\\(?P<escaped>.)|(?P<special>[()*?+])|.",
    re.DOTALL,
)
"""One part of an expression: a class, an assertion or `.`; an escaped character; a group or a repetition; or a plain
character."""
_MAX_MISSES = 8
"""Number of candidate places without a match after which the search continues without a filter."""
_MIN_PART_BYTES = 3
"""Minimum number of bytes from the chosen rarest byte to the end of the text."""
_NEAR_BYTES = 4_096
"""Number of bytes that are first searched without the engine."""
_COMMON_BYTES = b" etaoinsrhldcumpfgwyb\"',.:-_/0123456789kv=()"
"""The most common bytes of texts, logs and code, the most common one first."""
_LINE_END = re.compile(r"\n|(?<!\\)(?:\\\\)*\\n")


class Query(NamedTuple):
    """The text to search for: a regular expression, or with `literal` plain text."""

    pattern: str
    literal: bool = False
    ignore_case: bool = False
    multiline: bool = False
    """True if a match may span lines. Otherwise nothing in the pattern matches a line ending."""


class RegexMatch(Protocol):
    """A match, as the engine returns it."""

    def span(self) -> tuple[int, int]:
        """Return the start and end of the match, in bytes."""


class Matcher(Protocol):
    """A compiled pattern."""

    def search(self, text: bytes | bytearray, pos: int = 0, endpos: int | None = None) -> RegexMatch | None:
        """Return the first match between the two positions."""


class _Span(NamedTuple):
    start: int
    end: int

    def span(self) -> tuple[int, int]:
        return self.start, self.end


class _PlainMatcher:
    """The matcher for plain text."""

    def __init__(self, text: bytes) -> None:
        self._text = text

    def search(self, text: bytes | bytearray, pos: int = 0, endpos: int | None = None) -> RegexMatch | None:
        begin = text.find(self._text, pos, endpos)
        return None if begin < 0 else _Span(begin, begin + len(self._text))


class _RarestByteMatcher:
    """The matcher for plain text in large files. It lets the engine search for the end of the text that begins with
    its rarest byte, since the engine jumps from one occurrence of the first byte to the next."""

    def __init__(self, text: bytes, engine: Any) -> None:
        self._text = text
        # The end that begins with the rarest byte must not begin within a character. A short end occurs too often.
        starts = [
            i for i, byte in enumerate(text) if byte & 0xC0 != 0x80 and i <= max(len(text) - _MIN_PART_BYTES, 0)
        ]
        self._skipped = max(starts, key=lambda index: _COMMON_BYTES.find(text[index]) % (len(_COMMON_BYTES) + 1))
        options = engine.Options()
        options.literal = options.never_capture = True
        self._rest: Matcher = engine.compile(text[self._skipped :], options)
        engine.purge()

    def search(self, text: bytes | bytearray, pos: int = 0, endpos: int | None = None) -> RegexMatch | None:
        end = len(text) if endpos is None else endpos
        # Searching these bytes takes no longer than one call of the engine, and a match in them saves that call.
        limit = min(pos + _NEAR_BYTES, end)
        begin = text.find(self._text, pos, limit)
        if begin < 0 and limit < end:
            begin = self._search_from_rarest(text, max(limit - len(self._text), pos) + self._skipped, end)
        return None if begin < 0 else _Span(begin, begin + len(self._text))

    def _search_from_rarest(self, text: bytes | bytearray, pos: int, end: int) -> int:
        for _ in range(_MAX_MISSES):
            match = self._rest.search(text, pos, end)
            if match is None:
                return -1
            begin = match.span()[0] - self._skipped
            if text.startswith(self._text, begin):
                return begin
            pos = match.span()[0] + 1
        return text.find(self._text, pos - self._skipped, end)


class _FilteredMatcher:
    """The matcher for an expression. It tries the expression only in lines that contain a text, until too many of
    these lines did not match."""

    def __init__(self, text: Matcher, expression: Matcher) -> None:
        self._text = text
        self._expression = expression
        self._misses = 0

    def search(self, text: bytes | bytearray, pos: int = 0, endpos: int | None = None) -> RegexMatch | None:
        end = len(text) if endpos is None else endpos
        while self._misses < _MAX_MISSES:
            hit = self._text.search(text, pos, end)
            if hit is None:
                return None
            begins, ends = hit.span()
            line_end = text.find(b"\n", ends, end)
            line_end = end if line_end < 0 else line_end
            match = self._expression.search(text, max(text.rfind(b"\n", pos, begins) + 1, pos), line_end)
            if match is not None or line_end == end:
                return match
            self._misses += 1
            pos = line_end + 1
        return self._expression.search(text, pos, end)


def compile_query(query: Query) -> Matcher:
    """Return the matcher for a query. Raises FilesError with code `bad_pattern`, or `not_installed` if the engine is
    missing."""
    pattern, literal = query.pattern, query.literal
    if not pattern or len(pattern) > MAX_LENGTH:
        raise _bad_pattern(pattern, f"a pattern must have 1 to {MAX_LENGTH} characters")
    if not query.multiline and ("\n" in pattern if literal else _LINE_END.search(pattern)):
        raise FilesError("bad_pattern", "", "the pattern contains a line break", "Set multiline.")
    try:
        encoded = pattern.encode()
    except UnicodeEncodeError:
        raise _bad_pattern(pattern, "contains characters that text can't have") from None
    return _PlainMatcher(encoded) if _is_plain(query) else _compile_regex(query, encoded)


def _is_plain(query: Query) -> bool:
    """Return True if only the text of the pattern itself matches."""
    return not query.ignore_case and (query.literal or _SPECIAL.isdisjoint(query.pattern))


def counted_lines(query: Query) -> "re.Pattern[bytes] | None":
    """Return an expression of Python's `re` with one match in each line that matches `query`; None if the query is
    not plain text, or may span lines. One `findall` is many times as fast as a search for each line."""
    if query.multiline or not _is_plain(query):
        return None
    return re.compile(re.escape(query.pattern.encode()) + rb"[^\n]*")


def matcher_for_large_file(query: Query, matcher: Matcher) -> Matcher:
    """Return a matcher for one large file that finds what `matcher`, that of the `query`, finds, but usually
    faster."""
    text = _required_text(query)
    if not text:
        return matcher
    try:
        import re2
    except ImportError:
        return matcher
    plain = _RarestByteMatcher(text.encode(), re2)
    return plain if isinstance(matcher, _PlainMatcher) else _FilteredMatcher(plain, matcher)


def _required_text(query: Query) -> str:
    """Return the longest text that each match of the query contains; empty if none is known."""
    pattern = query.pattern
    if query.ignore_case or query.multiline:
        return ""
    if query.literal:
        return pattern
    if _UNREAD_SYNTAX.search(pattern):
        return ""
    texts, depth = [""], 0
    for part in _PART.finditer(pattern):
        special = part["special"]
        depth += (special == "(") - (special == ")")
        if special and special in "*?":
            texts[-1] = texts[-1][:-1]
        if special or part["skipped"] or depth:
            texts.append("")
        else:
            texts[-1] += part["escaped"] or part[0]
    return max(texts, key=len)


def matches_by_line(query: Query) -> bool:
    """Return True if a match in a line depends only on that line and its line ending, not on the rest of the text."""
    return not query.multiline and (query.literal or _WHOLE_TEXT_SYNTAX.search(query.pattern) is None)


def _compile_regex(query: Query, pattern: bytes) -> Matcher:
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
        reason = quote_name(message.replace(_EACH_LINE, b"").decode("utf-8", "replace")[:200])
        raise _bad_pattern(query.pattern, f"is not a valid RE2 expression: {reason}") from None
    # Empty the module's cache of the last 128 patterns, each of which has up to 8 MiB of automaton states.
    re2.purge()
    return matcher


def compile_any(expressions: Sequence[str]) -> Matcher | None:
    """Return a matcher of texts that have a line matching one of the expressions; None if the engine rejects them."""
    import re2

    options: Any = re2.Options()
    options.never_nl = options.never_capture = True
    options.log_errors = False
    try:
        matcher: Matcher = re2.compile(_EACH_LINE + ("|".join(expressions) or _MATCH_NOTHING).encode(), options)
    except re2.error:
        return None
    re2.purge()
    return matcher


def _bad_pattern(pattern: str, reason: str) -> FilesError:
    suggestion = "RE2 has no backreferences and no lookaround; set literal to search for plain text."
    return FilesError("bad_pattern", "", f"pattern {quote_name(pattern[:80])}: {reason}", suggestion)
