"""What is told of an import and of a backup."""

from servers.sqlite.texts import fenced, line, shown
from servers.sqlite.writing.backups import Backup
from servers.sqlite.writing.importing import Imported

__all__ = ["backup_text", "import_text"]


def import_text(done: Imported) -> str:
    """How many rows went where, and the columns with their declared types."""
    rows = f"{done.rows:,} row{'' if done.rows == 1 else 's'}"
    into = "a new table" if done.created else "a table that was there"
    columns = [f"{name} {kind}".strip() for name, kind in done.columns]
    told = fenced([f"table {shown(done.table)}", f"columns {line(columns)}"])
    return f"{rows} imported into {into}; {done.seconds * 1_000:.4g} ms\n{told}"


def backup_text(done: Backup) -> str:
    """The name and size of the copy, and what SQLite finds wrong with it."""
    facts = f"{done.file}: {done.bytes:,} bytes; {done.seconds * 1_000:.4g} ms; integrity check:"
    return f"{facts}\n{fenced(done.integrity)}"
