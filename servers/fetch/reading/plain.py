"""A piece of HTML as plain text."""

import re
from html import unescape

__all__ = ["plain_text"]

_UNSEEN = re.compile(r"<!--.*?(?:-->|\Z)|<(script|style)\b.*?(?:</\1\s*>|\Z)", re.DOTALL | re.IGNORECASE)
_BLOCK = re.compile(r"</?(?:p|div|h[1-6]|ul|ol|li|tr|table|blockquote|pre|br|hr)\b[^<>]*>", re.IGNORECASE)
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>|<![^<>]*>")
_SPACES = re.compile(r"[ \t\r\f\v\xa0]+")
_LINES = re.compile(r" ?\n ?(?:\n ?)+")


def plain_text(markup: str) -> str:
    """The words of a piece of HTML, in lines where it has blocks. Text without markup stays as it is."""
    text = _UNSEEN.sub("", markup)
    text = _TAG.sub("", _BLOCK.sub("\n", text))
    return _LINES.sub("\n\n", _SPACES.sub(" ", unescape(text))).strip()
