"""A page as a worker gets it, and what the readers of all kinds do with it."""

import json
from typing import Any, NamedTuple

from servers.fetch.reading.kinds import Kind
from servers.fetch.reading.page import Format

__all__ = ["Source", "described"]


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
