"""What goes between the server and a process that reads pages: a head in JSON, and a body of bytes.

No pickle, and nothing else that could make one side run code of the other: a page that takes over the process that
reads it has still only a pipe to write text into.
"""

import json
import struct
from typing import Any

__all__ = ["LENGTHS", "MAX_BODY", "MAX_HEAD", "Head", "lengths_of", "packed"]

Head = dict[str, Any]

LENGTHS = struct.Struct(">II")
MAX_HEAD = 1_000_000
MAX_BODY = 100_000_000


def packed(head: Head, length: int) -> bytes:
    """The beginning of a frame whose body has `length` bytes: the body is to follow."""
    text = json.dumps(head).encode()
    return LENGTHS.pack(len(text), length) + text


def lengths_of(start: bytes) -> tuple[int, int]:
    """How long the head and the body of a frame are. Raises ValueError where that is more than a frame may have."""
    head, body = LENGTHS.unpack(start)
    if head > MAX_HEAD or body > MAX_BODY:
        raise ValueError("a frame is too long")
    return head, body
