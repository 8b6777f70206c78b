"""A page in its three forms: as loaded, as the source for its reader, and as it was read."""

import json
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from servers.common.documents.kinds import DocumentKind

Format = Literal["markdown", "text", "html", "json", "links", "metadata"]
Form = Format | Literal["raw"]
"""Raw is the text as the site sent it."""
KindName = Literal["html", "json", "feed", "pdf", "markdown", "text", "image", "other"] | DocumentKind


class Loaded(NamedTuple):
    """The body of an answer, unpacked, and its metadata."""

    url: str
    """The final URL, without its fragment."""
    redirects: tuple[str, ...]
    """The URLs that led there, in order; empty if the first one answered itself."""
    status: int
    headers: Mapping[str, str]
    """By name in lower case."""
    media_type: str
    """In lower case, without parameters; "" if none is given."""
    charset: str | None
    """The charset in the Content-Type, as it is written."""
    body: bytes
    received: int
    """Bytes of the body as sent, before unpacking."""
    from_cache: bool
    """True if the body comes from an earlier answer, revalidated or still fresh."""
    fetched_at: float
    """The time when the site last sent or confirmed it, in seconds since 1970."""
    fragment: str = ""
    """The fragment of the last redirect that named one, or of the requested URL."""


class Kind(NamedTuple):
    """The way to read a page, and its media type as far as it is known."""

    name: KindName
    media_type: str


class Source(NamedTuple):
    """The body of a page, with its metadata and the request for it."""

    kind: Kind
    charset: str | None
    """The charset in the Content-Type, as it is written."""
    url: str
    """The URL that the links of the page are relative to."""
    format: Format
    section: str | None
    pages: str | None
    seconds: float
    """Largest number of seconds for reading."""
    body: bytes


class Removed(NamedTuple):
    """The counts of invisible parts, which are left out."""

    elements: int = 0
    """Elements that a style or an attribute hides, and that contain text."""
    characters: int = 0
    """Invisible characters: of no width, tags, and those that change the direction of text."""


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
    """The name of its original kind."""
    charset: str = ""
    """The charset its bytes were read in; "" if they are not text."""
    metadata: Metadata = Metadata()
    removed: Removed = Removed()
    notes: tuple[str, ...] = ()
    """Sentences a reader should know: that it seems to need JavaScript, that a part was left out."""
    image: bytes = b""
    """The bytes of an image, to be shown as such."""
    image_type: str = ""


def describe(**facts: Any) -> str:
    """Return the known facts about a page as JSON."""
    present = {name: value for name, value in facts.items() if value not in ("", None)}
    return json.dumps(present, ensure_ascii=False, indent=2)
