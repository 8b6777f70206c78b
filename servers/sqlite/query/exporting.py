"""Exports all rows of a query to a file."""

import sqlite3
from base64 import b64encode
from collections.abc import Iterable, Sequence
from contextlib import closing
from functools import partial
from typing import Any

from servers.common.sql.query.formats import ExportFile, ExportRequest
from servers.common.sql.query.pages import Row, fetch
from servers.common.sql.query.query import Query

from ..engine.deadline import StatementDeadline, retry_locked
from ..engine.quoted_names import execute
from ..values import encode_rows

_BATCH_ROWS, _BATCH_BYTES = 1_000, 1_000_000
"""Maximum number of rows, and approximate maximum number of bytes, that are written together."""


class Codec:
    """Encodes SQLite values for exports. In CSV, a blob becomes base64, and text that is not UTF-8 keeps its bytes
    (as lone surrogates)."""

    def encode(self, rows: Sequence[Row], cell_bytes: int) -> list[Row]:
        """Return the rows as JSON values of at most `cell_bytes` bytes each."""
        return encode_rows(rows, cell_bytes)

    def format(self, rows: Sequence[Row]) -> Iterable[Sequence[str | None]]:
        """Return the rows as text."""
        return (list(map(_format_value, row)) for row in rows)


def _format_value(value: Any) -> str | None:
    match value:
        case None | str():
            return value
        case bytes():
            return b64encode(value).decode()
        case float() if value in (float("inf"), float("-inf")):
            return "Infinity" if value > 0 else "-Infinity"
    return str(value)


def write_export(
    query: Query, request: ExportRequest, connection: sqlite3.Connection, deadline: StatementDeadline
) -> tuple[int, int]:
    """Write all rows of the query to a file. Return the number of rows and the size of the file in bytes. Raises
    SqlError."""
    run = partial(execute, connection, query.sql, query.parameters)
    with ExportFile(request, Codec()) as file, closing(retry_locked(deadline, run)) as cursor:
        file.begin([column[0] for column in cursor.description or ()])
        while batch := fetch(cursor, _BATCH_ROWS, _BATCH_BYTES):
            deadline.check()
            file.add(batch)
            deadline.report(file.rows, None, f"{file.rows:,} rows")
    return file.rows, file.bytes
