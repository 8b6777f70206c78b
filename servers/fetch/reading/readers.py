"""What the readers of all kinds of pages get, and which reader reads which kind.

It runs in a worker, which loads a reader with the first page of its kind.
"""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from servers.fetch.reading.kinds import Kind, KindName
from servers.fetch.reading.page import Format, Page

__all__ = ["Source", "described", "reader_of"]


class Source(NamedTuple):
    """The body of a page, and what is known of it and wanted of it."""

    kind: Kind
    charset: str | None
    """What the Content-Type names, as it is written."""
    url: str
    """What the links of the page are relative to."""
    format: Format
    section: str | None
    seconds: float
    """How long reading may take."""
    body: bytes


def described(**facts: Any) -> str:
    """What is known of a page, as JSON, without what is not."""
    known = {name: value for name, value in facts.items() if value not in ("", None)}
    return json.dumps(known, ensure_ascii=False, indent=2)


def reader_of(kind: KindName) -> Callable[[Source], Page]:
    """What reads pages of a kind, loaded."""
    if kind == "html":
        from servers.fetch.reading.html.page import read_html_page

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
