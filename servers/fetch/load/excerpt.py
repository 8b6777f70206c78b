"""Extracts the first words of a response with an error status, for the error message.

The text is scanned once, without backtracking: a regular expression that searches for the end of each tag can take
minutes if a tag has no end.
"""

import html
import re

from ..read.charsets import UTF8, find_charset

MAX_READ = 65_536
"""Maximum number of bytes of an error response's body that are read."""
MAX_EXCERPT_LENGTH = 500

MARK = re.compile(r"<!--|-->|<(?P<end>/?)(?P<name>[A-Za-z][A-Za-z0-9]*)[^<>]*>|<[!?][^<>]*>")
HIDDEN_ELEMENTS = {"script", "style", "template", "svg"}


def excerpt(body: bytes, media_type: str, charset: str | None) -> str:
    """Return at most 500 characters of the text in `body`; "" if its type is not text."""
    if not (media_type.startswith("text/") or media_type.endswith(("json", "xml")) or not media_type):
        return ""
    # The charset is looked up in a fixed list: Python caches each unknown name forever, and some codecs are slow.
    text = body[:MAX_READ].decode((find_charset(charset or "") or UTF8).codec, "replace")
    if "\0" in text:
        return ""
    if "html" in media_type or text.lstrip()[:1] == "<":
        text = html.unescape(_remove_tags(text))
    words = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return words if len(words) <= MAX_EXCERPT_LENGTH else words[: MAX_EXCERPT_LENGTH - 1].rstrip() + "…"


def _remove_tags(text: str) -> str:
    pieces: list[str] = []
    hidden_by, position = "", 0
    """`hidden_by` is the mark that ends hidden text: the name of an element, the end of a comment, or ""."""
    for mark in MARK.finditer(text):
        if not hidden_by:
            pieces.append(text[position : mark.start()])
            if mark[0] == "<!--":
                hidden_by = "-->"
            else:
                name = (mark["name"] or "").lower()
                hidden_by = name if name in HIDDEN_ELEMENTS and not mark["end"] and not mark[0].endswith("/>") else ""
        elif mark[0] == "-->" if hidden_by == "-->" else mark["end"] and mark["name"].lower() == hidden_by:
            hidden_by = ""
        position = mark.end()
    if not hidden_by:
        pieces.append(text[position:])
    return " ".join(pieces)
