"""Loaded pages and page sources, made from a body and a media type."""

from servers.fetch.read.kinds import Kind, KindName
from servers.fetch.read.page import Format, LoadedPage, Source

URL = "http://site.example/folder/page"


def loaded(body: str | bytes, media_type: str = "", charset: str | None = None) -> LoadedPage:
    data = body.encode() if isinstance(body, str) else body
    return LoadedPage(URL, (), 200, {}, media_type, charset, data, len(data), False, 0.0)


def source(
    kind: KindName,
    body: str | bytes,
    format: Format = "markdown",
    section: str | None = None,
    pages: str | None = None,
) -> Source:
    data = body.encode() if isinstance(body, str) else body
    return Source(Kind(kind, ""), None, URL, format, section, pages, 10, data)
