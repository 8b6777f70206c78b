"""A page: as it came over the network, as what reads it gets it, and as it was read."""

import json
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from servers.common.documents.kinds import DocumentKind

Format = Literal["markdown", "text", "html", "json", "links", "metadata"]
Form = Format | Literal["raw"]
"""Raw is the text as the site sent it."""
KindName = Literal["html", "json", "feed", "pdf", "markdown", "text", "image", "other"] | DocumentKind


class Loaded(NamedTuple):
    """The body of an answer, unpacked, and the facts that came with it."""

    url: str
    """The final URL, without its fragment."""
    redirects: tuple[str, ...]
    """The URLs that led there, in order; none where the first answered itself."""
    status: int
    headers: Mapping[str, str]
    """By name in lower case."""
    media_type: str
    """In lower case, without parameters; empty where none is given."""
    charset: str | None
    """What the Content-Type names, as it is written."""
    body: bytes
    received: int
    """Bytes of the body as sent, before unpacking."""
    from_cache: bool
    """Whether the body was kept from an earlier answer, revalidated or still fresh."""
    fetched_at: float
    """When the site last gave or confirmed it, in seconds since 1970."""
    fragment: str = ""
    """That of the last redirect that named one, or of the URL that was asked for."""


class Kind(NamedTuple):
    """How a page is to be read, and its media type as far as it is known."""

    name: KindName
    media_type: str


class Source(NamedTuple):
    """The body of a page, and what is known of it and wanted of it."""

    kind: Kind
    charset: str | None
    """What the Content-Type names, as it is written."""
    url: str
    """What the links of the page are relative to."""
    format: Format
    section: str | None
    pages: str | None
    seconds: float
    """How long reading may take."""
    body: bytes


class Removed(NamedTuple):
    """What an eye would not see, and is left out."""

    elements: int = 0
    """Elements that a style or an attribute hides, and that hold text."""
    characters: int = 0
    """Invisible characters: of no width, tags, and such as turn the direction of text."""


class Found(NamedTuple):
    """What a page says of itself; empty where it says nothing."""

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
    """What it was made from: the name of its kind."""
    charset: str = ""
    """How its bytes were read; empty where they are no text."""
    found: Found = Found()
    removed: Removed = Removed()
    notes: tuple[str, ...] = ()
    """Sentences a reader should know: that it seems to need JavaScript, that a part was left out."""
    image: bytes = b""
    """The bytes of an image, to be shown as such."""
    image_type: str = ""


def describe(**facts: Any) -> str:
    """What is known of a page, as JSON, without what is not."""
    known = {name: value for name, value in facts.items() if value not in ("", None)}
    return json.dumps(known, ensure_ascii=False, indent=2)
