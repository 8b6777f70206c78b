"""Quotes names, splits scripts into statements, and finds parameters and the declared types of columns in SQL.

The `sqlite3` module does not return the declared types of a query's columns, but the schema of a view of the query
contains them. This temporary view is created on a separate connection that runs no statements of clients, and is
never read.
"""

import re
import sqlite3
from functools import partial

from .deadline import StatementDeadline, retry_locked

# Quoted text, comments and words are matched to skip parameters and semicolons in them. Every repetition is
# possessive, and an unterminated token extends to the end of the text, so matching takes linear time.
_TOKENS = re.compile(
    r"""'(?:[^']++|'')*+(?:'|\Z)|"(?:[^"]++|"")*+(?:"|\Z)|`(?:[^`]++|``)*+(?:`|\Z)|\[[^\]]*+(?:\]|\Z)"""
    r"""|(?P<comment>--[^\n]*+|/\*.*?(?:\*/|\Z))|\w++|(?P<parameter>\?\d*+|[:@$]\w++)|(?P<end>;)""",
    re.DOTALL,
)
_COMMENTS = re.compile(r"--[^\n]*+|/\*.*?(?:\*/|\Z)", re.DOTALL)
_FIRST_WORD = re.compile(r"(?:\s++|;|--[^\n]*+|/\*.*?\*/)*+(\w++)", re.DOTALL)
_TRIGGER = re.compile(r"(?:EXPLAIN (?:QUERY PLAN )?)?CREATE (?:TEMP |TEMPORARY )?TRIGGER\b")
"""The beginning of a statement that contains other statements, and so semicolons."""
_VIEW = re.compile(r"CREATE (?:TEMP |TEMPORARY )?VIEW\b")


def quote(name: str) -> str:
    """Return the name in double quotes, so that any name is valid in a statement."""
    return '"' + name.replace('"', '""') + '"'


def select(columns: str, table: str, clauses: str) -> str:
    """Return a query on the table with this name. `columns` and `clauses` are SQL, which must not come from a
    client."""
    return f"SELECT {columns} FROM {quote(table)} {clauses}"  # noqa: S608 - the name is quoted


def find_declared_types(query: str, connection: sqlite3.Connection, deadline: StatementDeadline) -> list[str | None]:
    """Return the declared type of each column of `query`, or None for an expression. The list is empty if the query
    can't be a view."""
    try:
        # To create a view, SQLite uses its cached schema. Reading the database refreshes the cache.
        retry_locked(deadline, partial(connection.execute, "SELECT 1 FROM main.sqlite_schema LIMIT 1")).fetchall()
        retry_locked(
            deadline, partial(connection.execute, f"CREATE TEMP VIEW declared AS {replace_parameters(query)}")
        )
    except (sqlite3.Error, sqlite3.Warning):
        return []  # as for VALUES without SELECT, PRAGMA and EXPLAIN, which can't be views
    try:
        rows = connection.execute("PRAGMA temp.table_info(declared)").fetchall()
    except sqlite3.Error:
        return []
    finally:
        connection.execute("DROP VIEW temp.declared")
    return [kind or None for _, _, kind, *_ in rows]


def split_statements(script: str) -> list[str]:
    """Split a script into statements, and remove the semicolons between them.

    A CREATE TRIGGER ends with an END after a semicolon, as in `sqlite3_complete`
    (https://sqlite.org/c3ref/complete.html).
    """
    statements: list[str] = []
    words: list[str] = []
    """The first words of the statement, enough to recognize CREATE TRIGGER."""
    start, before, last = 0, ";", ";"
    for token in _TOKENS.finditer(script):
        if token["comment"]:
            continue
        text = token[0].upper()
        if text != ";":
            words = [*words, text][:6]
        elif not _TRIGGER.match(" ".join(words)) or (before, last) == (";", "END"):
            statements.append(script[start : token.start()].strip())
            start, words = token.end(), []
        before, last = last, text
    statements.append(script[start:].strip())
    return [statement for statement in statements if _COMMENTS.sub("", statement).strip()]


def find_first_word(statement: str) -> str:
    """Return the first word of a statement in capitals; "" if the statement begins with something else."""
    word = _FIRST_WORD.match(statement)
    return word[1].upper() if word else ""


def find_view_query(statement: str) -> str:
    """Return the query in a CREATE VIEW; "" for any other statement."""
    words: list[str] = []
    for token in _TOKENS.finditer(statement):
        text = token[0].upper()
        if text == "AS":
            return statement[token.end() :] if _VIEW.match(" ".join(words)) else ""
        if not token["comment"]:
            words = [*words, text][:6]
    return ""


def find_parameters(query: str) -> list[str]:
    """Return the parameters of `query`, as written in it."""
    return [token["parameter"] for token in _TOKENS.finditer(query) if token["parameter"]]


def replace_double_quotes(query: str) -> str:
    """Return the query with backquotes instead of double quotes around names."""

    def backquote(token: re.Match[str]) -> str:
        if not token[0].startswith('"'):
            return token[0]
        name = token[0][1:].removesuffix('"').replace('""', '"')
        return "`" + name.replace("`", "``") + "`"

    return _TOKENS.sub(backquote, query) if '"' in query else query


def replace_parameters(query: str) -> str:
    """Return the query with NULL instead of each parameter: SQLite treats those without a value as NULL."""
    return _TOKENS.sub(lambda token: "NULL" if token["parameter"] else token[0], query)
