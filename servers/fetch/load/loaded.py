"""A page as it came over the network."""

from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["Loaded"]


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
