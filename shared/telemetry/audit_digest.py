"""The digest of a call's arguments: SHA-256 of their JSON in ASCII, with sorted names and without spaces.

It shows whether two calls had the same arguments, but not what these were, unless they can be guessed.
"""

import json
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

from pydantic_core import to_json

from ..steps import Steps

# `json.dumps` would create an encoder each time, which takes longer than the encoding itself.
_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=str).encode
_STEP_CHARACTERS, _PIECE_COST = 131_072, 64
"""The number of characters that are encoded and digested in one step, which takes two milliseconds; and the number of
characters that take as long as the overhead of one piece."""
_SCALAR_TYPES = frozenset((str, int, bool, type(None)))
_EMPTY_HASH = sha256()
"""Copied for each digest, which takes half the time of creating one by the name of the algorithm."""


def digest(value: Any) -> str:
    """Return the digest of `value` in hexadecimal."""
    if isinstance(value, dict) and _SCALAR_TYPES.issuperset(map(type, value.values())):
        text = to_json(dict(sorted(value.items())) if len(value) > 1 else value)
        # If it is ASCII without DEL, `_encode` would return the same text, in twice the time.
        if text.isascii() and b"\x7f" not in text:
            result = _EMPTY_HASH.copy()
            result.update(text)
            return result.hexdigest()
    return sha256(_encode(value).encode()).hexdigest()


def digest_steps(value: Any) -> Steps[str]:
    """Return the same as `digest`, in steps, between which other tasks can run."""
    result, size = sha256(), 0
    for piece in _pieces(value):
        result.update(piece.encode())
        size += _PIECE_COST + len(piece)
        if size >= _STEP_CHARACTERS:
            yield
            size = 0
    return result.hexdigest()


def _pieces(value: Any) -> Iterator[str]:
    """Yield the JSON of `value` in pieces, as `_encode` would return it."""
    if isinstance(value, dict) and value:
        for number, key in enumerate(sorted(value)):
            yield f"{',' if number else '{'}{_encode(key)}:"
            yield from _pieces(value[key])
        yield "}"
    elif isinstance(value, list) and value:
        for number, item in enumerate(value):
            yield "," if number else "["
            yield from _pieces(item)
        yield "]"
    elif isinstance(value, str) and len(value) > _STEP_CHARACTERS:
        yield '"'
        for start in range(0, len(value), _STEP_CHARACTERS):
            yield _encode(value[start : start + _STEP_CHARACTERS])[1:-1]
        yield '"'
    else:
        yield _encode(value)
