"""Finds the tables that clients name, and suggests similar names of tables, columns and functions."""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from servers.common.sql.errors import SqlError
from servers.common.sql.texts import (
    NEEDS_QUOTES,
    ONLY_NAMES,
    SqlName,
    fence,
    find_nearest,
    format_name,
    format_names,
    shorten,
)

from ..engine.link import Ask
from ..sql import unquote
from .entries import VISIBLE, Relation, read_relations

_IDENTIFIER_PATTERN = r'"(?:[^"]|"")+"|[^\W\d][\w$]*'
_IDENTIFIER = re.compile(_IDENTIFIER_PATTERN)
_QUALIFIED = re.compile(
    rf"({_IDENTIFIER_PATTERN})(?:\s*\.\s*({_IDENTIFIER_PATTERN}))?(?:\s*\.\s*({_IDENTIFIER_PATTERN}))?"
)
_WORD = re.compile(r"\w+")
_MAX_SHOWN = 5
"""Maximum number of names, and of function signatures, that are shown."""
_MAX_TABLES = 3
"""Maximum number of tables that are listed for a column."""
_MAX_LINE_LENGTH = 1_000
"""Maximum length of a list of columns that is shown, in characters."""
_MAX_LENGTH = 200
"""Maximum length of a table name from a client, in characters."""

# With the collation of `relname`, which is C, `lower` would change only its ASCII letters.
_CANDIDATES = """
    SELECT c.oid::pg_catalog.regclass::pg_catalog.text, c.oid, n.nspname::pg_catalog.text,
        c.relname::pg_catalog.text, pg_catalog.pg_table_is_visible(c.oid)
    FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    WHERE c.relkind = ANY ('{r,p,v,m,f}'::pg_catalog."char"[]) AND n.nspname !~ '^pg_(toast|temp)'
        AND pg_catalog.has_schema_privilege(n.oid, 'USAGE')
        AND pg_catalog.lower(c.relname COLLATE pg_catalog."default") = ANY (
            ARRAY(SELECT pg_catalog.lower(w) FROM pg_catalog.unnest($1::pg_catalog.text[]) AS w))"""
_TABLE_NAMES = f"""
    SELECT c.oid::pg_catalog.regclass::pg_catalog.text FROM pg_catalog.pg_class AS c
    WHERE c.relkind = ANY ('{{r,p,v,m,f}}'::pg_catalog."char"[]) AND {VISIBLE}
    ORDER BY c.relispartition, pg_catalog.pg_table_is_visible(c.oid) DESC, 1 LIMIT 5000"""  # noqa: S608
_COLUMN_NAMES = f"""
    SELECT pg_catalog.quote_ident(a.attname), c.oid::pg_catalog.regclass::pg_catalog.text
    FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid
    WHERE c.relkind = ANY ('{{r,p,v,m,f}}'::pg_catalog."char"[]) AND {VISIBLE} AND a.attnum > 0 AND NOT a.attisdropped
        AND ($1::pg_catalog.text[] IS NULL OR c.relname = ANY ($1::pg_catalog.text[]))
    ORDER BY c.relispartition, 2, a.attnum LIMIT 20000"""  # noqa: S608
_READABLE = f"""
    SELECT c.oid::pg_catalog.regclass::pg_catalog.text, pg_catalog.quote_ident(a.attname)
    FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid
    WHERE c.relkind = ANY ('{{r,p,v,m,f}}'::pg_catalog."char"[]) AND {VISIBLE} AND a.attnum > 0 AND NOT a.attisdropped
        AND c.relname = ANY ($1::pg_catalog.text[]) AND NOT pg_catalog.has_table_privilege(c.oid, 'SELECT')
        AND pg_catalog.has_column_privilege(c.oid, a.attnum, 'SELECT')
    ORDER BY 1, a.attnum LIMIT 1000"""  # noqa: S608
_FUNCTIONS = """
    SELECT DISTINCT p.proname::pg_catalog.text FROM pg_catalog.pg_proc AS p
    WHERE pg_catalog.pg_function_is_visible(p.oid) AND pg_catalog.has_function_privilege(p.oid, 'EXECUTE')
    ORDER BY 1 LIMIT 5000"""
_SIGNATURES = """
    SELECT p.oid::pg_catalog.regprocedure::pg_catalog.text FROM pg_catalog.pg_proc AS p
    WHERE p.proname = $1 AND pg_catalog.pg_function_is_visible(p.oid) ORDER BY 1 LIMIT 6"""


class _Candidate(NamedTuple):
    """A table or view that a name may refer to."""

    name: str
    oid: int
    schema: str
    unqualified: str
    is_visible: bool


_MATCH_RULES: Sequence[Callable[[_Candidate, str, Sequence[str]], bool]] = (
    lambda candidate, name, _: candidate.name == name,
    lambda candidate, name, _: candidate.unqualified == name and candidate.is_visible,
    lambda candidate, _, parts: len(parts) == 1 and candidate.unqualified == parts[0] and candidate.is_visible,
    lambda candidate, _, parts: len(parts) == 2 and [candidate.schema, candidate.unqualified] == parts,
    lambda candidate, name, _: candidate.unqualified == name,
    lambda candidate, _, parts: len(parts) == 1 and candidate.is_visible,
    lambda _candidate, _, parts: len(parts) == 1,
    lambda candidate, _, parts: len(parts) == 2 and candidate.schema.lower() == parts[0].lower(),
    lambda candidate, name, _: candidate.unqualified.lower() == name.lower(),
    lambda candidate, name, _: f"{candidate.schema}.{candidate.unqualified}" == name,
)
"""The rules for choosing a candidate; the first rule that matches any candidate decides.

In lowercase, all candidates have the same name. A rule receives a candidate, the name from the client, and the parts
of this name between dots, without quotes.
"""


async def find_relation(ask: Ask, table_name: str) -> Relation:
    """Return the table or view with that name. The name may be written as in a statement, without its quotes, or, if
    only one table or view matches, with other capitalization.

    Raises SqlError with code `not_found` and the most similar names, or `ambiguous`.
    """
    table_name = table_name.strip()
    parts = _split(table_name)
    # The first of three parts may name the database itself.
    if len(parts) == 3 and await ask("SELECT 1 WHERE pg_catalog.current_database() = $1", parts[0]):
        parts = parts[1:]
    unqualified_names = [*parts[-1:], table_name.rpartition(".")[2]]
    rows = (
        await ask(_CANDIDATES, [table_name, *unqualified_names])
        if "\0" not in table_name and len(table_name) <= _MAX_LENGTH
        else []
    )
    candidates = sorted(_Candidate(*row) for row in rows)
    for matches in _MATCH_RULES:
        matching = [candidate for candidate in candidates if matches(candidate, table_name, parts)]
        if len(matching) > 1:
            names = fence([format_name(SqlName(candidate.name)) for candidate in matching[:_MAX_SHOWN]])
            raise SqlError("ambiguous", "several tables or views have that name", f"Name one of them:\n{names}")
        if matching:
            relations = await read_relations(ask, matching[0].oid)
            if not relations:
                raise SqlError("not_found", "the table or view has just been removed")
            return relations[0]
    suggestion = _format_suggestion(await _find_tables(ask, table_name, table_name))
    suggestion = suggestion or "list_tables lists those that exist."
    raise SqlError("not_found", "there is no table or view with that name", suggestion)


async def suggest_readable(ask: Ask, sql: str) -> str:
    """Return a text that lists the readable columns of each table in the statement of which the role may read only
    some columns; "" if there is no such table."""
    columns: dict[str, list[SqlName]] = {}
    for table, column in await ask(_READABLE, sorted(_read_words(sql))):
        columns.setdefault(format_name(SqlName(table)), []).append(SqlName(column))
    lines = [f"{table}: {shorten(format_names(names), _MAX_LINE_LENGTH)}" for table, names in columns.items()]
    return f"The role may read only these columns of the tables:\n{fence(lines)}" if lines else ""


async def suggest_names(ask: Ask, state: str, sql: str, position: int) -> str:
    """Return a text with names similar to the one at character `position` of a statement, "" if there are none.

    The SQLSTATE of the statement's error (`state`) determines the kind of names: tables, columns or functions, or,
    after a syntax error, the same name in quotes.
    """
    if state == "42601":
        word = _WORD.match(sql, max(position, 0))
        return "" if word is None else await _suggest_quotes(ask, word[0].lower())
    match = _QUALIFIED.match(sql, max(position, 0))
    parts = [unquote(part) for part in match.groups() if part is not None] if match is not None else []
    if not parts:
        return ""
    match state:
        case "42P01":
            return _format_suggestion(await _find_tables(ask, ".".join(parts), parts[-1]))
        case "42703":
            advice = ONLY_NAMES if len(parts) == 1 and sql[position] == '"' else ""
            nearest = _format_suggestion(await _find_columns(ask, parts[-1], sql))
            return " ".join(filter(None, (advice, nearest)))
        case "42883":
            function = parts[-1]
            signatures = [similar for (similar,) in await ask(_SIGNATURES, function.lower())]
            if signatures:
                return f"It exists with other arguments:\n{fence(signatures[:_MAX_SHOWN])}"
            names = [name for (name,) in await ask(_FUNCTIONS)]
            return _format_suggestion([format_name(similar) for similar in find_nearest(function, names)])
    return ""


async def _suggest_quotes(ask: Ask, word: str) -> str:
    names = [*await ask(_TABLE_NAMES), *await ask(_COLUMN_NAMES, None)]
    quoted = {SqlName(name) for name, *_ in names if unquote(name).lower() == word and name.startswith('"')}
    return f"{NEEDS_QUOTES}\n{fence([format_name(name) for name in sorted(quoted)])}" if quoted else ""


def _split(name: str) -> list[str]:
    """Return the parts of a name between its dots, at most three, without quotes; empty for other text."""
    match = _QUALIFIED.fullmatch(name)
    return [unquote(part) for part in match.groups() if part is not None] if match is not None else []


async def _find_tables(ask: Ask, *candidates: str) -> Sequence[str]:
    names = [SqlName(name) for (name,) in await ask(_TABLE_NAMES)]
    for candidate in candidates:
        nearest = find_nearest(candidate, names)
        if nearest:
            return [format_name(name) for name in nearest]
    unqualified = {_split(name)[-1] if _split(name) else name: name for name in reversed(names)}
    return [format_name(unqualified[name]) for name in find_nearest(candidates[-1], unqualified)]


async def _find_columns(ask: Ask, name: str, sql: str) -> Sequence[str]:
    """Return the most similar columns of the tables in the statement, or else of all tables."""
    for tables in (sorted(_read_words(sql)), None):
        tables_by_column: dict[str, list[SqlName]] = {}
        for column, table in await ask(_COLUMN_NAMES, tables):
            tables_by_column.setdefault(SqlName(column), []).append(SqlName(table))
        nearest = find_nearest(name, tables_by_column)
        if nearest:
            return [
                f"{format_name(similar)} (in {', '.join(map(format_name, tables_by_column[similar][:_MAX_TABLES]))})"
                for similar in nearest
            ]
    return ()


def _read_words(sql: str) -> set[str]:
    """Return the words of a statement that may be names, both as written and in lowercase, since PostgreSQL converts
    unquoted names to lowercase."""
    words = {unquote(word) for word in _IDENTIFIER.findall(sql.replace("\0", ""))}
    return words | {word.lower() for word in words}


def _format_suggestion(nearest: Sequence[str]) -> str:
    return f"The nearest names are:\n{fence(nearest)}" if nearest else ""
