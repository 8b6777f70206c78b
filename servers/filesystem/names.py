"""Displays file names and contents in results so that they can't be mistaken for the server's own words.

A name is shown on one line (see `display_name`). If it looks like the server's own words, such as a note in brackets,
a link's mark, a size or a line number, one of its characters is escaped. In a sentence, a name of several words is
quoted. A name with escapes is followed by its URI, which clients pass to refer to the entry.
"""

import re
from collections.abc import Callable

from shared.text import escape_match

_SERVER_WORDS = (
    r"\A (?=.)"
    r"|\A\[(?=[a-z]+: |\d+ (?:entries|files) )"
    r"|\AN(?=o matches found)"
    r"|[:-](?=\d+[:-] )"
    r"| (?=(?:\((?:link|special|not read: [a-z_]+)\)|\.\.\.|[\d,]+ bytes)\Z)"
)
"""The start of a name that looks like the server's own words, up to the character to escape."""
_BREAKING = "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029]|\r(?!\n)"
"""Characters that could make one line look like two, or move the cursor of a terminal. A tab is harmless."""


def escape_breaks(lines: str) -> str:
    """Return a file's lines with escapes for all characters that could make them look like other lines."""
    return re.sub(_BREAKING, lambda match: match[0].encode("unicode_escape").decode(), lines)


def add_uri(name: str, uri: Callable[[], str]) -> str:
    """Return a result of `display_name`, which may be a path, followed by its URI if escapes change it."""
    # Everything that looks like the server's own words has a space in it.
    if " " in name:
        name = re.sub(_SERVER_WORDS, escape_match, name)
    # No name can imitate the URI, which has more consecutive slashes than any path.
    return f"{name} ({uri()})" if "\\" in name else name
