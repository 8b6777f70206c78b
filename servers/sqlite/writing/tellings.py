"""What an import and a backup give, in both forms."""

from collections.abc import Sequence
from typing import Any

from typing_extensions import TypedDict

from servers.sqlite.reading.cells import column
from servers.sqlite.reading.texts import fenced
from servers.sqlite.writing.backups import Backup
from servers.sqlite.writing.importing import Imported

__all__ = ["BackupResult", "ImportResult", "backup_result", "backup_text", "import_result", "import_text"]

_NAME = 1_000


class ImportColumn(TypedDict):
    """A column that got values, and its declared type."""

    name: str
    type: str


class ImportResult(TypedDict):
    """Rows that were put into a table."""

    table: str
    created: bool
    rows: int
    columns: list[ImportColumn]
    elapsed_ms: float


class BackupResult(TypedDict):
    """A copy of a database; `integrity` is "ok", or what SQLite finds wrong with it."""

    file: str
    bytes: int
    integrity: Sequence[str]
    elapsed_ms: float


def import_result(done: Imported) -> ImportResult:
    """The import as data."""
    return {
        "table": done.table,
        "created": done.created,
        "rows": done.rows,
        "columns": [{"name": name, "type": kind} for name, kind in done.columns],
        "elapsed_ms": round(done.seconds * 1_000, 2),
    }


def import_text(result: ImportResult) -> str:
    """The same as text."""
    count = result["rows"]
    into = "a new table" if result["created"] else "a table that was there"
    facts = f"{count:,} row{'' if count == 1 else 's'} imported into {into}; {result['elapsed_ms']:g} ms"
    columns: list[Any] = [f"{one['name']} {one['type']}".strip() for one in result["columns"]]
    return "\n".join(
        (facts, fenced((*column([result["table"]], _NAME).texts, " | ".join(column(columns, _NAME).texts))))
    )


def backup_result(done: Backup) -> BackupResult:
    """The backup as data."""
    return {
        "file": done.file,
        "bytes": done.bytes,
        "integrity": done.integrity,
        "elapsed_ms": round(done.seconds * 1_000, 2),
    }


def backup_text(result: BackupResult) -> str:
    """The same as text."""
    facts = f"{result['file']}: {result['bytes']:,} bytes; {result['elapsed_ms']:g} ms; integrity check:"
    return "\n".join((facts, fenced(result["integrity"])))
