"""HTML: from bytes to text, which `html` then reads."""

from servers.fetch.reading.charsets import decode
from servers.fetch.reading.html.page import read_html
from servers.fetch.reading.page import Page
from servers.fetch.reading.source import Source

__all__ = ["read_html_page"]


def read_html_page(source: Source) -> Page:
    """The page as `read_html` gives it. Raises FetchError as that does."""
    text, charset = decode(source.body, source.charset, source.kind.media_type)
    return read_html(text, source.url, source.format, source.section)._replace(charset=charset)
