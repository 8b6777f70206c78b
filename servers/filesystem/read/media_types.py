"""Media types of files by their names, since Python's own table lacks most source code types."""

from functools import lru_cache

BINARY = "application/octet-stream"
TEXT = "text/plain"
"""The media types of text and of bytes without a more specific type."""


@lru_cache(1_024)
def media_type_of(name: str) -> str | None:
    """Return the media type that a name suggests, or None. Names repeat, so the results are cached."""
    # Slow to import, and only resource lists and file descriptions need it.
    from content_types import get_content_type

    suffix = name.rpartition("/")[2][1:].rpartition(".")
    media_type: str | None = get_content_type(suffix[2], fallback=None) if suffix[1] and suffix[2] else None
    return media_type
