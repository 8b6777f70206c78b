"""How what files have and are called stands in a result, so that it can't be taken for what the server itself says.

A name is shown on one line (see `displayed`). It may not look like the server's own words either: a note in
brackets, the mark of a link, a size, the number of a line. Where it does, one character of it is shown as an escape.
In a sentence a name of several words stands in quotes. The URI of an entry remains the form to hand back.
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
"""How a name would look like the server's own words, from the character on that is escaped then."""
_BREAKING = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029]|\r(?!\n)")
"""What could make one line of a file look like two, or move the cursor of a terminal. A tab is harmless."""


def unbroken(lines: str) -> str:
    """Lines of files with nothing in them that could make them look like others."""
    return _BREAKING.sub(lambda found: found[0].encode("unicode_escape").decode(), lines)


def told(name: str, uri: Callable[[], str]) -> str:
    """A `displayed` name or path as it stands in a result: where escapes make it another one, with its URI behind it.

    No name can look like that: the URI has more slashes in a row than any path.
    """
    # All that looks like the server's own has a space in it.
    if " " in name:
        name = _OURS.sub(escaped, name)
    return f"{name} ({uri()})" if "\\" in name else name
