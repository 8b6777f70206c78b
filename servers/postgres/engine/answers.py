"""Converts between PostgreSQL's text format and Python values, for queries that this program itself makes.

`values.py` converts the values in the results of clients' queries.
"""

from collections.abc import Callable
from typing import Any, Self

from servers.common.sql.errors import SqlError

from ..arrays import format_array, parse_array

Cell = bytes | None
"""A value in the form that PostgreSQL writes; None is NULL."""


class ListText(bytes):
    """A list parameter as the text of an array, with the attribute `json`: the same list as JSON text."""

    json: bytes

    def __new__(cls, array: bytes, json: bytes) -> Self:
        """Return the text `array`, with `json` as its attribute."""
        text = super().__new__(cls, array)
        text.json = json
        return text


def _decode_text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _decode_vector(value: bytes) -> list[int]:
    return [*map(int, value.split())]


_DECODERS: dict[int, Callable[[bytes], Any]] = {
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
_ELEMENT_OIDS = {1000: 16, 1005: 21, 1007: 23, 1016: 20, 1021: 700, 1022: 701, 1028: 26, 1231: 1700}
"""The oids of array types, with those of their element types."""
_TEXT_ARRAYS = frozenset({1001, 1002, 1003, 1009, 1014, 1015, 2951})
"""The oids of arrays of bytea, "char", name, text, char, varchar and uuid, whose elements stay text."""
JSON_OIDS = frozenset({114, 3802})
"""The oids of the types json and jsonb."""


def decode(value: Cell, oid: int) -> Any:
    """Decode a value of the type with this oid as a bool, int, float, or one-dimensional list of these; as a str for
    other types."""
    if value is None:
        return None
    if oid in _ELEMENT_OIDS or oid in _TEXT_ARRAYS:
        element = _ELEMENT_OIDS.get(oid, 0)
        parts = parse_array(_decode_text(value))
        return [None if part is None else decode(part.encode(), element) for part in parts]
    return _DECODERS.get(oid, _decode_text)(value)


def encode(value: object) -> Cell:
    """Encode a parameter as text; PostgreSQL infers its type. Raises SqlError with code `bad_parameters`."""
    match value:
        case None | bytes():
            return value
        case bool():
            return b"t" if value else b"f"
        case list():
            return encode_text(format_array(value, str))
    return encode_text(str(value))


def encode_text(text: str, code: str = "bad_parameters") -> bytes:
    """Encode a string in UTF-8. Raises SqlError with this `code` for a string that PostgreSQL can't store."""
    if "\0" in text:
        raise SqlError(code, "a text contains the character U+0000, which PostgreSQL does not allow in text")
    try:
        return text.encode()
    except UnicodeEncodeError:
        reason = "a text contains half of a surrogate pair, which UTF-8 can't represent"
        raise SqlError(code, reason) from None
