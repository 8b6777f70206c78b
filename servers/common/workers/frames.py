"""Encodes messages between a server and a worker as frames, which have a JSON head and a body of bytes.

Nothing is pickled, so neither side can make the other run code. If a malicious file takes over its worker, the worker
can only write data to the server.
"""

import json
import struct
from typing import Any

Head = dict[str, Any]

LENGTHS = struct.Struct(">II")
MAX_HEAD = 1_000_000
"""Maximum size of a head in bytes."""
MAX_BODY = 100_000_000
"""Maximum size of a body in bytes."""


def pack(head: Head, length: int) -> bytes:
    """Return the beginning of a frame. A body of `length` bytes must follow it."""
    text = json.dumps(head).encode()
    return LENGTHS.pack(len(text), length) + text


def lengths_of(start: bytes) -> tuple[int, int]:
    """Return the lengths of the head and the body of a frame, given its first bytes. Raises ValueError if one is too
    long."""
    head, body = LENGTHS.unpack(start)
    if head > MAX_HEAD or body > MAX_BODY:
        raise ValueError("a frame is too long")
    return head, body
