"""Text that is shown as it is: plain text, Markdown, source code, CSS, XML, SVG."""

from servers.fetch.reading.charsets import decode
from servers.fetch.reading.page import Page
from servers.fetch.reading.source import Source, described

__all__ = ["read_text"]


def read_text(source: Source) -> Page:
    """The text, and nothing of it read or run: what an entity of XML stands for is not looked for."""
    text, charset = decode(source.body, source.charset, source.kind.media_type)
    if source.format == "metadata":
        facts = described(kind="text", media_type=source.kind.media_type, charset=charset, characters=len(text))
        return Page(facts, "text", charset)
    return Page(text, "text", charset)
