"""The SQL that made a database."""

import sqlite3

from servers.sqlite.describing.entries import all_entries, ask, steady
from servers.sqlite.engine.limits import Stop
from servers.sqlite.texts import fenced

__all__ = ["schema_sql"]


def schema_sql(most: int, connection: sqlite3.Connection, stop: Stop) -> str:
    """The statements that make the schema again, `most` bytes at most; what is left out is counted.

    A virtual table makes those tables itself that it keeps its data in.
    """
    question = """
        SELECT tbl_name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND substr(name, 1, 7) <> 'sqlite_'
        ORDER BY CASE type WHEN 'table' THEN 1 WHEN 'index' THEN 2 WHEN 'view' THEN 3 ELSE 4 END, name"""
    with steady(connection, stop):
        shadows = {one.name for one in all_entries(connection) if one.kind == "shadow"}
        statements = [f"{sql};" for table, sql in ask(connection, question) if table not in shadows]
    shown: list[str] = []
    for statement in statements:
        most -= len(statement.encode()) + len("\n\n")
        if most < 0:
            shown.append(f"-- {len(statements) - len(shown)} more statements had no room")
            break
        shown.append(statement)
    # The marks of data are comments here, so that the text can be run.
    text, _, end = fenced(["\n\n".join(shown)]).rpartition("\n")
    return f"-- {text}\n-- {end}\n"
