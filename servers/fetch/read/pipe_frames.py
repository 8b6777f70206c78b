"""What goes between the server and a process that reads pages: a head in JSON, and a body of bytes.

No pickle, and nothing else that could make one side run code of the other: a page that takes over the process that
reads it has still only a pipe to write text into.
"""

import json
import struct
from typing import Any

from servers.fetch.errors import CODES, FetchError
from servers.fetch.read.page import Found, Page, Removed
from shared.text import join_lines

Head = dict[str, Any]

LENGTHS = struct.Struct(">II")
MAX_HEAD = 1_000_000
MAX_BODY = 100_000_000


def pack(head: Head, length: int) -> bytes:
    """The beginning of a frame whose body has `length` bytes: the body is to follow."""
    text = json.dumps(head).encode()
    return LENGTHS.pack(len(text), length) + text


def lengths_of(start: bytes) -> tuple[int, int]:
    """How long the head and the body of a frame are. Raises ValueError where that is more than a frame may have."""
    head, body = LENGTHS.unpack(start)
    if head > MAX_HEAD or body > MAX_BODY:
        raise ValueError("a frame is too long")
    return head, body


def head_of(page: Page) -> Head:
    """A page as the head of an answer. Its text is to follow as the body, and no image is sent."""
    fields = page._asdict() | {"found": page.found._asdict(), "removed": page.removed._asdict()}
    del fields["text"], fields["image"]
    return {"page": fields}


def page_of(head: Head, body: bytes) -> Page:
    """The page in an answer, which is believed no more than the page itself. Raises the FetchError that stands there
    instead, or `unreadable` for what is no answer."""
    try:
        if "error" in head:
            code, reason, suggestion, quoted = map(str, head["error"])
            raise FetchError(code if code in CODES else "unreadable", reason, suggestion, quoted=quoted)
        fields = head["page"]
        fields["text"] = body.decode()
        fields["found"] = Found(**fields["found"])
        fields["removed"] = Removed(**fields["removed"])
        fields["notes"] = tuple(join_lines(str(note)) for note in fields["notes"])
        return Page(**fields)
    except (LookupError, TypeError, ValueError):
        raise FetchError("unreadable", "the page broke the process that was to read it") from None
