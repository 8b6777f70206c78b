"""Which reader reads which kind of page. Runs in a worker, which loads a reader with the first page of its kind."""

from collections.abc import Callable

from servers.fetch.reading.kinds import KindName
from servers.fetch.reading.page import Page
from servers.fetch.reading.source import Source

__all__ = ["reader_of"]


def reader_of(kind: KindName) -> Callable[[Source], Page]:
    """What reads pages of a kind, loaded."""
    if kind == "html":
        from servers.fetch.reading.html_page import read_html_page

        return read_html_page
    if kind == "json":
        from servers.fetch.reading.json_page import read_json

        return read_json
    if kind == "feed":
        from servers.fetch.reading.feed_page import read_feed

        return read_feed
    if kind == "pdf":
        from servers.fetch.reading.pdf_page import read_pdf

        return read_pdf
    from servers.fetch.reading.text_page import read_text

    return read_text
