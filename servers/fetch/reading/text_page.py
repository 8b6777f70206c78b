"""Text: shown as it is, or made of a piece of HTML."""

import re
from html import unescape

from servers.fetch.reading.charsets import decode
from servers.fetch.reading.page import Page
from servers.fetch.reading.readers import Source, described

__all__ = ["plain_text", "read_text"]

_UNSEEN = re.compile(r"<!--.*?(?:-->|\Z)|<(script|style)\b.*?(?:</\1\s*>|\Z)", re.DOTALL | re.IGNORECASE)
_BLOCK = re.compile(r"</?(?:p|div|h[1-6]|ul|ol|li|tr|table|blockquote|pre|br|hr)\b[^<>]*>", re.IGNORECASE)
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>|<![^<>]*>")
_SPACES = re.compile(r"[ \t\r\f\v\xa0]+")
_LINES = re.compile(r" ?\n ?(?:\n ?)+")


def read_text(source: Source) -> Page:
    """The text, and nothing of it read or run: what an entity of XML stands for is not looked for."""
    text, charset = decode(source.body, source.charset, source.kind.media_type)
    if source.format == "metadata":
        facts = described(kind="text", media_type=source.kind.media_type, charset=charset, characters=len(text))
        return Page(facts, "text", charset)
    return Page(text, "text", charset)


def plain_text(markup: str) -> str:
    """The words of a piece of HTML, in lines where it has blocks. Text without markup stays as it is."""
    text = _UNSEEN.sub("", markup)
    text = _TAG.sub("", _BLOCK.sub("\n", text))
    return _LINES.sub("\n\n", _SPACES.sub(" ", unescape(text))).strip()
