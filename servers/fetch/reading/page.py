"""A page as it is read: what the worker processes give back."""

from typing import Literal, NamedTuple

__all__ = ["Form", "Format", "Found", "Page", "Removed"]

Format = Literal["markdown", "text", "html", "json", "links", "metadata"]
Form = Format | Literal["raw"]
"""Raw is the text as the site sent it."""


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
    """What it was made from: html, json, feed, pdf, text, image, or other."""
    charset: str = ""
    """How its bytes were read; empty where they are no text."""
    found: Found = Found()
    removed: Removed = Removed()
    notes: tuple[str, ...] = ()
    """Sentences a reader should know: that it seems to need JavaScript, that a part was left out."""
    image: bytes = b""
    """The bytes of an image, to be shown as such."""
    image_type: str = ""
