"""Tables and databases as text: what is from the database stands between the marks of data."""

from collections.abc import Iterator, Sequence

from servers.sqlite.describing import lines
from servers.sqlite.describing.overview import DatabaseSummary, table_line
from servers.sqlite.describing.table import TableDescription
from servers.sqlite.texts import fenced, line, shown

__all__ = ["overview_text", "table_text"]


def table_text(table: TableDescription) -> str:
    """All about a table."""
    facts: list[str] = [table["kind"]]
    if table["strict"]:
        facts.append("STRICT")
    if table["without_rowid"]:
        facts.append("WITHOUT ROWID")
    if table["rows_estimated"] is not None:
        facts.append(f"about {table['rows_estimated']} rows by the last ANALYZE")
    if table["left_out"]:
        facts.append(f"left out: {_counted(table['left_out'])}")
    statistics = table["statistics"]
    if statistics is not None:
        partial = ", partial: more rows, or columns that are missing" if statistics["partial"] else ""
        facts.append(f"statistics of {statistics['rows_examined']} rows{partial}")
    return "\n".join(("; ".join(facts), fenced([shown(table["name"]), *_parts(table)])))


def overview_text(found: Sequence[DatabaseSummary]) -> str:
    """One database after the other."""
    return "\n\n".join(_database_text(one) for one in found)


def _database_text(one: DatabaseSummary) -> str:
    facts = [f"database {one['database']}", "may be changed" if one["writable"] else "may only be read"]
    if one["problem"] is not None:
        return "\n".join(("; ".join([*facts, "can't be read"]), fenced([one["problem"]])))
    if one["left_out"]:
        facts.append(f"left out: {_counted(one['left_out'])}")
    parts = [
        *map(table_line, one["tables"]),
        *_section("tables and views without their columns", list(map(shown, one["other_tables"]))),
        *_section("foreign keys", one["foreign_keys"]),
        *_section("indexes", one["indexes"]),
    ]
    return "\n".join(("; ".join(facts), fenced(parts)))


def _counted(left_out: dict[str, int]) -> str:
    return ", ".join(f"{count} {what.replace('_', ' ')}" for what, count in left_out.items())


def _parts(table: TableDescription) -> Iterator[str]:
    if table["problem"] is not None:
        yield f"problem: {table['problem']}"
    yield from _section("columns", [lines.column(one) for one in table["columns"]])
    yield from _section("foreign keys", [lines.foreign_key(one) for one in table["foreign_keys"]])
    yield from _section("referenced by", [lines.foreign_key(one) for one in table["referenced_by"]])
    yield from _section("indexes", [lines.index(one) for one in table["indexes"]])
    yield from _section("triggers", table["triggers"])
    yield from _section("sql", [table["sql"]])
    if table["sample"] is not None:
        sample = table["sample"]
        yield from _section("sample", [f"columns {line(sample['columns'])}", *map(line, sample["rows"])])
    if table["statistics"] is not None:
        yield from _section("statistics", [lines.statistics(one) for one in table["statistics"]["columns"]])


def _section(title: str, parts: Sequence[str]) -> Iterator[str]:
    if parts:
        yield f"{title}:"
        yield from ("  " + part.replace("\n", "\n  ") for part in parts)
