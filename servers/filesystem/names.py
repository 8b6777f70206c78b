"""Display of the names and contents of files in a result, so that they can't be taken for the server's own words.

A name is shown on one line (see `displayed`). It must not look like the server's own words either: a note in
brackets, the mark of a link, a size, the number of a line. If it does, one of its characters is shown as an escape.
In a sentence a name of several words is put in quotes. The URI of an entry remains the form to hand back.
"""

import re
from collections.abc import Callable

from shared.text import escaped

_OURS = re.compile(
    r"\A (?=.)"
    r"|\A\[(?=[a-z]+: |\d+ (?:entries|files) )"
    r"|\AN(?=o matches found)"
    r"|[:-](?=\d+[:-] )"
    r"| (?=(?:\((?:link|special|not read: [a-z_]+)\)|\.\.\.|[\d,]+ bytes)\Z)"
)
"""The start of a name that looks like the server's own words, up to the character to escape."""
_BREAKING = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029]|\r(?!\n)")
"""Characters that could make one line look like two, or move the cursor of a terminal. A tab is harmless."""


def unbroken(lines: str) -> str:
    """Return lines of files with every character escaped that could make them look like other lines."""
    return _BREAKING.sub(lambda match: match[0].encode("unicode_escape").decode(), lines)


def with_uri(name: str, uri: Callable[[], str]) -> str:
    """Return a `displayed` name or path for a result; if escapes change it, its URI follows.

    No name can look like that: the URI has more slashes in a row than any path.
    """
    # Everything that looks like the server's own words has a space in it.
    if " " in name:
        name = _OURS.sub(escaped, name)
    return f"{name} ({uri()})" if "\\" in name else name
