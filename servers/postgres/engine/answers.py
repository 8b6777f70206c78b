"""Converts between PostgreSQL's text format and Python values, for the server's own queries.

`values.py` converts values for clients.
"""

from collections.abc import Callable, Sequence
from typing import Any, Self

from servers.common.sql.errors import SqlError
from servers.postgres.arrays import format_array, parse_array

Cell = bytes | None
"""A value in the form that PostgreSQL writes; None is NULL."""


class ListText(bytes):
    """A list as the text of an array, which also stores its text as JSON."""

    json: bytes

    def __new__(cls, array: bytes, json: bytes) -> Self:
        """Create the text of a list from its two forms."""
        text = super().__new__(cls, array)
        text.json = json
        return text


def _decode_text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _decode_vector(value: bytes) -> list[int]:
    return [*map(int, value.split())]


_BY_OID: dict[int, Callable[[bytes], Any]] = {
    16: b"t".__eq__,
    20: int,
    21: int,
    22: _decode_vector,  # int2vector
    23: int,
    26: int,  # oid
    30: _decode_vector,  # oidvector
    700: float,
    701: float,
    1700: lambda value: int(value) if value.lstrip(b"-").isdigit() else float(value),  # numeric
}
_ELEMENTS = {1000: 16, 1005: 21, 1007: 23, 1016: 20, 1021: 700, 1022: 701, 1028: 26, 1231: 1700}
"""Array types, with the types of their elements."""
_TEXTS = frozenset({1001, 1002, 1003, 1009, 1014, 1015, 2951})
"""Arrays of bytea, "char", name, text, char, varchar and uuid."""
JSON_OIDS = frozenset({114, 3802})
"""The types json and jsonb."""


def decode(value: Cell, oid: int) -> Any:
    """Decode a value of the type with this oid as a bool, an int, a float, a one-dimensional list, or otherwise a
    str."""
    if value is None:
        return None
    if oid in _ELEMENTS or oid in _TEXTS:
        element = _ELEMENTS.get(oid, 0)
        parts = parse_array(_decode_text(value))
        return [None if part is None else decode(part.encode(), element) for part in parts]
    return _BY_OID.get(oid, _decode_text)(value)


def encode(value: object) -> Cell:
    """Encode the value of a parameter, whose type PostgreSQL infers. Raises SqlError with code `bad_parameters`."""
    match value:
        case None | bytes():
            return value
        case bool():
            return b"t" if value else b"f"
        case list():
            return encode_text(format_array(value, str))
    return encode_text(str(value))


def encode_text(text: str, code: str = "bad_parameters") -> bytes:
    """Encode a string to send. Raises SqlError with that `code` for a string that PostgreSQL can't store."""
    if "\0" in text:
        raise SqlError(code, "a text contains the character U+0000, which PostgreSQL does not allow in text")
    try:
        return text.encode()
    except UnicodeEncodeError:
        reason = "a text contains half of a surrogate pair, which UTF-8 can't represent"
        raise SqlError(code, reason) from None


def encode_all(values: Sequence[object]) -> list[Cell]:
    """Encode the values of parameters, each by `encode`."""
    return [encode(value) for value in values]
