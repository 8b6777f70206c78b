"""Media types of files, by their names: Python's own table knows few types of source texts."""

from functools import lru_cache

BINARY = "application/octet-stream"
TEXT = "text/plain"
"""What stands for bytes, and for a text, of which nothing more is known."""


@lru_cache(1_024)
def media_type_of(name: str) -> str | None:
    """The media type that a name suggests; None where it suggests none. Names come again, so it is remembered."""
    # Takes a while to load, and only lists of resources and descriptions of files need it.
    from content_types import get_content_type

    suffix = name.rpartition("/")[2][1:].rpartition(".")
    found: str | None = get_content_type(suffix[2], fallback=None) if suffix[1] and suffix[2] else None
    return found
