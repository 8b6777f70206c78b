"""What texts can hold, and how those that others wrote stand in ours."""

import re
import secrets
from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["code_block", "escape", "is_unicode", "join_lines", "marks", "nearest"]


def is_unicode(text: str) -> bool:
    """Whether it can be written as UTF-8: it can't where it has half of a surrogate pair, as Python has in place of
    what is no UTF-8 in the name of a file."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def escape(text: str) -> str:
    """The text on one line: what is not printed, line ends and what a terminal obeys among it, as escapes."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


def join_lines(text: str) -> str:
    """The text on one line: white space of any kind as single spaces, and the rest as by `escape`."""
    return escape(" ".join(text.split()))


def marks(kind: str, said: str) -> tuple[str, str]:
    """Two lines to put what others wrote between: the first has what is `said` of it.

    Both have a word that nobody can know beforehand, so what stands between them can't end them and go on as if the
    server spoke.
    """
    mark = f"{kind}-{secrets.token_hex(4)}"
    return f"<{mark}> {said}", f"</{mark}>"


def code_block(text: str, language: str = "") -> str:
    """The text as a block of code in Markdown, in a fence longer than any in it (CommonMark, 4.5)."""
    longest = max(map(len, re.findall("`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The one of the `known` names that is likely to be meant by `name`."""
    return next(iter(get_close_matches(name, list(known), 1, cutoff)), None)
