"""Conversion of PostgreSQL values to JSON, and back.

PostgreSQL sends values as text in its own notation. Parameters are sent as text too, and PostgreSQL infers their
types. JSON has no bytes and no NaN, and most parsers read its numbers as doubles. A value that JSON can't represent
becomes an object with its type. A client can pass this object back as a parameter, so nothing is lost in a round
trip.
"""

import math
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from pydantic_core import to_json

from servers.common.sql.errors import SqlError
from servers.common.sql.query.pages import Row

from .arrays import format_array, parse_array
from .engine.answers import Cell, ListText

_MAX_EXACT = 1 << 53
"""Integers up to this are exact even if JSON numbers are parsed as IEEE 754 doubles (RFC 8259, section 6)."""
_EXACT_DIGITS = 15
"""Number of significant digits that a double always keeps."""
_NUMERIC = b"0123456789.-"
_OBJECT_KINDS = ("int8", "float4", "float8", "numeric")
"""The types whose values become objects with their text if no JSON number is equal to them."""


class Type(NamedTuple):
    """The properties of a type that are needed to encode its values."""

    name: str
    """The name that `format_type` writes."""
    kind: str = "text"
    """How values are encoded: `bool`, `int4`, `int8`, `float4`, `float8`, `numeric`, `bytea` or `array`; `text` for
    all types whose values stay text."""
    element: "Type | None" = None
    """The type of the elements of an array."""


class Codec:
    """Encodes rows for results and exports. Their columns have the given types."""

    def __init__(self, types: Sequence[Type]) -> None:
        self._types = types

    def encode(self, rows: Sequence[Row], cell_bytes: int) -> list[Row]:
        """Return the rows as JSON values of at most `cell_bytes` bytes each."""
        return encode_rows(self._types, rows, cell_bytes)

    def format(self, rows: Sequence[Row]) -> Iterable[Sequence[str | None]]:
        """Return the rows as text, as COPY writes it."""
        return ([None if cell is None else cell.decode("utf-8", "surrogateescape") for cell in row] for row in rows)


def encode_rows(types: Sequence[Type], rows: Sequence[tuple[Cell, ...]], max_bytes: int) -> list[Row]:
    """Return the rows, with columns of these `types`, as JSON values of at most `max_bytes` bytes each."""
    if not types:
        return [()] * len(rows)
    columns = zip(*rows, strict=True)
    encoded = [encode_column(type_, values, max_bytes) for type_, values in zip(types, columns, strict=bool(rows))]
    return list(zip(*encoded, strict=True))


def encode_column(type_: Type, values: Sequence[Cell], max_bytes: int) -> Sequence[Any]:
    """Return the values of one column as JSON values of at most `max_bytes` bytes each; NULL is None."""
    non_null = [value for value in values if value is not None] if None in values else values
    plain = _encode_plain(type_.kind, non_null, max_bytes)  # type: ignore[arg-type]
    encoded = plain if plain is not None else [_encode_cell(type_, value, max_bytes) for value in non_null]  # type: ignore[arg-type]
    if len(encoded) == len(values):
        return encoded
    rest = iter(encoded)
    return [None if value is None else next(rest) for value in values]


def encode_parameter(value: Any) -> bytes | None:
    """Return the text to send for a parameter: a plain JSON value, or an object from a result (see the module).

    A list becomes a `ListText`: the text of an array, or JSON if the statement expects that. Any other object is sent
    as JSON. Raises SqlError with code `bad_parameters`.
    """
    if value is None:
        return None
    if isinstance(value, dict):
        raw = _decode_bytes(value)
        if raw is not None:
            return raw
    try:
        data = _format_parameter(value).encode()
    except ValueError:
        raise SqlError(
            "bad_parameters", "a parameter is not valid Unicode, or is a number that is far too long"
        ) from None
    if b"\0" in data:
        raise SqlError(
            "bad_parameters", "a parameter contains the character U+0000, which PostgreSQL does not allow in text"
        )
    return ListText(data, to_json(value)) if isinstance(value, list) else data


def _encode_plain(kind: str, values: Sequence[bytes], max_bytes: int) -> Sequence[Any] | None:
    """Return the values as plain JSON values if that is possible for all of them; otherwise None."""
    match kind:
        case "bool":
            return list(map(b"t".__eq__, values))
        case "int4":
            return list(map(int, values))
        case "int8":
            integers = list(map(int, values))
            return integers if not integers or -_MAX_EXACT <= min(integers) <= max(integers) <= _MAX_EXACT else None
        case "float4" | "float8":
            reals = list(map(float, values))
            return reals if all(map(math.isfinite, reals)) else None
        case "numeric" if not b"".join(values).strip(_NUMERIC) and max(map(len, values), default=0) <= _EXACT_DIGITS:
            return [float(value) if b"." in value else int(value) for value in values]
        case "text" if max(map(len, values), default=0) <= max_bytes:
            try:
                return list(map(bytes.decode, values))
            except UnicodeDecodeError:
                return None
    return None


def _encode_cell(type_: Type, raw: bytes, max_bytes: int) -> Any:
    if type_.kind == "bytea":
        # The text of a bytea is \x and two hexadecimal digits for each byte.
        size = len(raw) // 2 - 1
        data = b64encode(bytes.fromhex(raw[2 : 2 + 2 * max_bytes].decode())).decode()
        cell = {"type": type_.name, "bytes": size, "base64": data}
        return cell if size <= max_bytes else {**cell, "truncated": True}
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        # A SQL_ASCII database sends the bytes as they were stored.
        cell = {"type": type_.name, "bytes": len(raw), "base64": b64encode(raw[:max_bytes]).decode()}
        return cell if len(raw) <= max_bytes else {**cell, "truncated": True}
    if len(raw) > max_bytes and type_.kind in ("text", "array", "numeric"):
        truncated_text = raw[:max_bytes].decode(errors="ignore")
        return {"type": type_.name, "bytes": len(raw), "value": truncated_text, "truncated": True}
    if type_.kind == "array" and type_.element is not None and text.startswith("{"):
        return _map_nested(_ENCODERS[type_.element.kind], parse_array(text))
    return _ENCODERS[type_.kind](text)


def _encode_integer(text: str) -> Any:
    value = int(text)
    return value if abs(value) <= _MAX_EXACT else {"type": "int8", "value": text}


def _encode_real(kind: str, text: str) -> Any:
    value = float(text)
    return value if math.isfinite(value) else {"type": kind, "value": text}


def _encode_numeric(text: str) -> Any:
    if text[-1].isdigit() and len(text.replace(".", "").strip("-0")) <= _EXACT_DIGITS:
        value = float(text)
        if "." not in text and abs(value) <= _MAX_EXACT:
            return int(text)
        if math.isfinite(value) and Decimal(repr(value)) == Decimal(text):
            return value
    return {"type": "numeric", "value": text}


_ENCODERS: Mapping[str, Callable[[str], Any]] = {
    "bool": "t".__eq__,
    "int4": int,
    "int8": _encode_integer,
    "float4": lambda text: _encode_real("float4", text),
    "float8": lambda text: _encode_real("float8", text),
    "numeric": _encode_numeric,
    "bytea": lambda text: {
        "type": "bytea",
        "bytes": len(raw := bytes.fromhex(text[2:])),
        "base64": b64encode(raw).decode(),
    },
    "text": str,
    # An array inside an array (of a domain, for example) stays text, since a list would look like a further
    # dimension. So does an array whose bounds don't begin with 1, since a list can't represent them.
    "array": str,
}


def _map_nested(encode: Callable[[str], Any], values: Sequence[Any]) -> list[Any]:
    return [
        _map_nested(encode, value) if isinstance(value, list) else None if value is None else encode(value)
        for value in values
    ]


def _format_parameter(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case int():
            return str(value)
        case float():
            # JSON does not distinguish integers from reals, so 1.0 may be meant as an integer. The text 1 is valid
            # for all number types.
            return repr(value).removesuffix(".0")
        case list():
            return format_array(value, _format_element)
        case {"type": str(kind), "value": str(text)} if kind in _OBJECT_KINDS and len(value) == 2:
            return text
        case {"type": str(), "bytes": int(), "truncated": True}:
            raise SqlError("bad_parameters", "a parameter is a truncated value", "Read the whole value first.")
    return to_json(value).decode()


def _format_element(value: Any) -> str:
    raw = _decode_bytes(value) if isinstance(value, dict) else None
    return _format_parameter(value) if raw is None else raw.decode("utf-8", "surrogateescape")


def _decode_bytes(value: Mapping[str, Any]) -> bytes | None:
    """Return the text to send for an object that contains bytes; None for any other object."""
    match value:
        case {"truncated": True}:
            return None
        case {"type": "bytea", "base64": str(data), **rest} if rest.keys() <= {"bytes"}:
            return b"\\x" + _decode_base64(data).hex().encode()
        case {"type": str(), "bytes": int(), "base64": str(data)} if len(value) == 3:
            return _decode_base64(data)
    return None


def _decode_base64(data: str) -> bytes:
    try:
        return b64decode(data, validate=True)
    except ValueError:
        raise SqlError("bad_parameters", "a parameter has bytes that are not base64") from None
