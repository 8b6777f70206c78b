"""The three stages of a page: as it was loaded, as the input of a reader, and as it was read."""

import json
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from servers.common.documents.kinds import DocumentKind

Format = Literal["markdown", "text", "html", "json", "links", "metadata"]
RequestedFormat = Format | Literal["raw"]
"""A format that a page can be requested in. `raw` is the text as the site sent it."""
KindName = Literal["html", "json", "feed", "pdf", "markdown", "text", "image", "other"] | DocumentKind


class LoadedPage(NamedTuple):
    """The decompressed body of a response, and its metadata."""

    url: str
    """The final URL, without its fragment."""
    redirects: tuple[str, ...]
    """The URLs that redirected to the final one, in order."""
    status: int
    headers: Mapping[str, str]
    """Headers by lowercase name."""
    media_type: str
    """The media type in the Content-Type, in lowercase and without parameters; "" if there is none."""
    charset: str | None
    """The charset in the Content-Type, as written."""
    body: bytes
    received: int
    """Size of the body in bytes as sent, before decompression."""
    from_cache: bool
    """True if the body comes from an earlier response, revalidated or still fresh."""
    fetched_at: float
    """The time at which the site last sent or confirmed the page, in seconds since 1970."""
    fragment: str = ""
    """The fragment of the last redirect with one, or of the requested URL."""
    is_cut: bool = False
    """True if the connection ended too early, so that the end of the body is missing."""


class Kind(NamedTuple):
    """The kind of a page, which decides how it is read, and its media type, if known."""

    name: KindName
    media_type: str


class Source(NamedTuple):
    """The input of a reader: the body of a page, its metadata, and the requested format and part."""

    kind: Kind
    charset: str | None
    """The charset in the Content-Type, as written."""
    url: str
    """The base URL of the page's links."""
    format: Format
    section: str | None
    """The heading or fragment of the only section to read."""
    pages: str | None
    """The only pages of a document to read, such as "1-3,7"."""
    seconds: float
    """Time limit for reading, in seconds."""
    body: bytes


class RemovedCounts(NamedTuple):
    """Counts of invisible parts that were removed."""

    elements: int = 0
    """Number of elements with text that a style or an attribute hides."""
    characters: int = 0
    """Number of invisible characters: zero-width ones, tags, and those that change the text direction."""


class Metadata(NamedTuple):
    """The metadata that a page declares; "" for missing fields."""

    title: str = ""
    description: str = ""
    language: str = ""
    author: str = ""
    canonical: str = ""
    published: str = ""
    site: str = ""


class Page(NamedTuple):
    """The text of a page in one format, or an image."""

    text: str
    kind: str
    """The name of the kind from which the text was made."""
    charset: str = ""
    """The charset used to decode its bytes; "" if they are not text."""
    metadata: Metadata = Metadata()
    removed: RemovedCounts = RemovedCounts()
    notes: tuple[str, ...] = ()
    """Sentences for the reader, for example that the page seems to need JavaScript, or that a part was left out."""
    omitted_headings: tuple[str, ...] = ()
    """The headings of omitted text, if most of the page is omitted."""
    image: bytes = b""
    """The bytes of an image that is shown as an image."""
    image_type: str = ""


def describe(**facts: Any) -> str:
    """Return the known properties of a page as JSON."""
    present = {name: value for name, value in facts.items() if value not in ("", None)}
    return json.dumps(present, ensure_ascii=False, indent=2)
