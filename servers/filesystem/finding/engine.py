"""The engine that matches patterns: RE2, which takes time in proportion to the text whatever the pattern is.

Its syntax is that of most languages without backreferences and lookaround, which no linear engine has. Text is bytes,
taken as UTF-8; what is no UTF-8 matches nothing but itself.
"""

import re
from typing import Any, NamedTuple, Protocol

from servers.filesystem.errors import FilesError
from servers.filesystem.names import displayed

_EACH_LINE = "(?m)"
"""Makes `^` and `$` those of each line."""
MAX_LENGTH = 4_096
"""Characters of the longest pattern."""
_LINE_END = re.compile(r"\n|(?<!\\)(?:\\\\)*\\n")


class Query(NamedTuple):
    """What to look for in files: a regular expression, or with `literal` a plain text."""

    pattern: str
    literal: bool = False
    ignore_case: bool = False
    multiline: bool = False
    """Whether a match may go over the end of a line; otherwise nothing in the pattern matches one."""


class Matched(Protocol):
    """A match, as the engine gives it."""

    def span(self) -> tuple[int, int]:
        """Where it begins and ends, in bytes."""


class Matcher(Protocol):
    """A compiled pattern."""

    def search(self, text: bytes, pos: int = 0, endpos: int | None = None) -> Matched | None:
        """The first match that lies between the two."""


def compiled(query: Query) -> Matcher:
    """The matcher of a query. Raises FilesError `bad_pattern`, or `not_installed` where there is no engine."""
    try:
        import re2  # noqa: PLC0415 (an extra, which the other tools do not need)
    except ImportError:
        reason = "searching the content of files needs the package google-re2"
        raise FilesError("not_installed", "", reason, "Install the extra 'filesystem'.") from None
    if not query.pattern or len(query.pattern) > MAX_LENGTH:
        raise _bad(query.pattern, f"a pattern has 1 to {MAX_LENGTH} characters")
    if not query.multiline and ("\n" in query.pattern if query.literal else _LINE_END.search(query.pattern)):
        raise FilesError("bad_pattern", "", "the pattern holds the end of a line", "Set multiline.")
    options: Any = re2.Options()
    options.literal = query.literal
    options.case_sensitive = not query.ignore_case
    options.never_nl = not query.multiline
    options.never_capture = True
    options.log_errors = False
    pattern = query.pattern if query.literal else _EACH_LINE + query.pattern
    try:
        matcher: Matcher = re2.compile(pattern.encode(), options)
    except (re2.error, UnicodeEncodeError) as error:
        raise _bad(query.pattern, f"is no regular expression of RE2: {_reason(error)}") from None
    # The module would keep the last 128 patterns, each with up to 8 MiB of what it learnt of texts.
    re2.purge()
    return matcher


def _reason(error: Exception) -> str:
    said = error.args[0] if error.args else b""
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
    return displayed(text.replace(_EACH_LINE, "")[:200])


def _bad(pattern: str, reason: str) -> FilesError:
    suggestion = "RE2 has no backreferences and no lookaround; set literal for a plain text."
    return FilesError("bad_pattern", "", f"pattern {displayed(pattern[:80])}: {reason}", suggestion)
