"""Rows as files.

CSV is that of RFC 4180: lines end in CRLF, the first one has the names. NULL is empty, and an empty text is `""`; a
blob is base64; a text that is no UTF-8 keeps its bytes. In JSON and JSON Lines a row is an array, because names may
stand twice, and a value that JSON can't hold is an object that names its type, as in the answers to queries. JSON
Lines has the names in its first line.
"""

import re
import sys
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

from pydantic_core import to_json

from servers.sqlite.reading.cells import cells

__all__ = ["FORMATS", "Format", "FormatName"]

FormatName = Literal["csv", "json", "jsonl"]
Rows = Sequence[Sequence[Any]]
Writer = Callable[[Sequence[str], Iterable[Rows]], Iterator[bytes]]

_QUOTED = re.compile(r'[",\r\n]|^$')


class Format(NamedTuple):
    """A format: its type, and what writes the names of columns and some rows after the other in it."""

    mime_type: str
    written: Writer


def _csv(names: Sequence[str], batches: Iterable[Rows]) -> Iterator[bytes]:
    yield _csv_lines([names])
    for rows in batches:
        yield _csv_lines(rows)


def _csv_lines(rows: Rows) -> bytes:
    return "".join(",".join(map(_field, row)) + "\r\n" for row in rows).encode("utf-8", "surrogateescape")


def _field(value: Any) -> str:
    match value:
        case None:
            return ""
        case bytes():
            return b64encode(value).decode() or '""'
        case float() if value in (float("inf"), float("-inf")):
            return "Infinity" if value > 0 else "-Infinity"
        case str() if _QUOTED.search(value):
            return '"' + value.replace('"', '""') + '"'
    return str(value)


def _json(names: Sequence[str], batches: Iterable[Rows]) -> Iterator[bytes]:
    yield b'{"columns":' + to_json(names) + b',"rows":['
    before = b"\n"
    for rows in batches:
        yield before + b",\n".join(map(to_json, _cells(rows)))
        before = b",\n"
    yield b"\n]}\n"


def _json_lines(names: Sequence[str], batches: Iterable[Rows]) -> Iterator[bytes]:
    yield to_json(names) + b"\n"
    for rows in batches:
        yield b"".join(to_json(row) + b"\n" for row in _cells(rows))


def _cells(rows: Rows) -> Iterator[Sequence[Any]]:
    """The rows with their values as JSON has them, whole."""
    return zip(*[cells(values, sys.maxsize) for values in zip(*rows, strict=True)], strict=True)


FORMATS: dict[FormatName, Format] = {
    "csv": Format("text/csv", _csv),
    "json": Format("application/json", _json),
    "jsonl": Format("application/jsonl", _json_lines),
}
