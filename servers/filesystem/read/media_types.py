"""Media types of files by their names, from the package content-types: Python's own table lacks most types of source
code."""

from functools import lru_cache

BINARY = "application/octet-stream"
TEXT = "text/plain"
"""The media types of files with no more specific type: of bytes, and of text."""


@lru_cache(1_024)
def media_type_of(name: str) -> str | None:
    """Return the media type that a name suggests, or None. Names repeat, so the results are cached."""
    # Imported here because that is slow, and only resource lists and file descriptions need it.
    from content_types import get_content_type

    # Skip the first character of the name: a dot there does not begin an extension.
    _, dot, extension = name.rpartition("/")[2][1:].rpartition(".")
    media_type: str | None = get_content_type(extension, fallback=None) if dot and extension else None
    return media_type
