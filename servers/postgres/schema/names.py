"""What clients call tables and columns: the one that is meant, or those that are named alike."""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from servers.common.sql.errors import SqlError
from servers.common.sql.texts import SqlName, fence, find_nearest, format_name
from servers.postgres.engine.link import Ask
from servers.postgres.schema.entries import SEEN, Relation, read_relations

_PART = r'"(?:[^"]|"")+"|[^\W\d][\w$]*'
_IDENTIFIER = re.compile(_PART)
_QUALIFIED = re.compile(rf"({_PART})(?:\s*\.\s*({_PART}))?(?:\s*\.\s*({_PART}))?")
_SHOWN = 5
"""Names and signatures of functions."""
_TABLES = 3
"""Tables of a column that are named."""
_LONGEST = 200
"""Characters of what a client calls a table."""

_CANDIDATES = """
    SELECT c.oid::pg_catalog.regclass::pg_catalog.text, c.oid, n.nspname::pg_catalog.text,
        c.relname::pg_catalog.text, pg_catalog.pg_table_is_visible(c.oid)
    FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    WHERE c.relkind = ANY ('{r,p,v,m,f}'::pg_catalog."char"[]) AND n.nspname !~ '^pg_(toast|temp)'
        AND pg_catalog.has_schema_privilege(n.oid, 'USAGE')
        AND pg_catalog.lower(c.relname) = ANY (
            ARRAY(SELECT pg_catalog.lower(w) FROM pg_catalog.unnest($1::pg_catalog.text[]) AS w))"""
_TABLE_NAMES = f"""
    SELECT c.oid::pg_catalog.regclass::pg_catalog.text FROM pg_catalog.pg_class AS c
    WHERE c.relkind = ANY ('{{r,p,v,m,f}}'::pg_catalog."char"[]) AND {SEEN}
    ORDER BY c.relispartition, pg_catalog.pg_table_is_visible(c.oid) DESC, 1 LIMIT 5000"""  # noqa: S608
_COLUMN_NAMES = f"""
    SELECT pg_catalog.quote_ident(a.attname), c.oid::pg_catalog.regclass::pg_catalog.text
    FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid
    WHERE c.relkind = ANY ('{{r,p,v,m,f}}'::pg_catalog."char"[]) AND {SEEN} AND a.attnum > 0 AND NOT a.attisdropped
        AND ($1::pg_catalog.text[] IS NULL OR c.relname = ANY ($1::pg_catalog.text[]))
    ORDER BY c.relispartition, 2, a.attnum LIMIT 20000"""  # noqa: S608
_FUNCTIONS = """
    SELECT DISTINCT p.proname::pg_catalog.text FROM pg_catalog.pg_proc AS p
    WHERE pg_catalog.pg_function_is_visible(p.oid) AND pg_catalog.has_function_privilege(p.oid, 'EXECUTE')
    ORDER BY 1 LIMIT 5000"""
_SIGNATURES = """
    SELECT p.oid::pg_catalog.regprocedure::pg_catalog.text FROM pg_catalog.pg_proc AS p
    WHERE p.proname = $1 AND pg_catalog.pg_function_is_visible(p.oid) ORDER BY 1 LIMIT 6"""


class _Candidate(NamedTuple):
    """A table or view that may be meant."""

    name: str
    oid: int
    schema: str
    bare: str
    is_visible: bool


_MATCHES: Sequence[Callable[[_Candidate, str, Sequence[str]], bool]] = (
    lambda one, wanted, _: one.name == wanted,
    lambda one, wanted, _: one.bare == wanted and one.is_visible,
    lambda one, _, parts: len(parts) == 1 and one.bare == parts[0] and one.is_visible,
    lambda one, _, parts: len(parts) == 2 and [one.schema, one.bare] == parts,
    lambda one, wanted, _: one.bare == wanted,
    lambda one, _, parts: len(parts) == 1 and one.is_visible,
    lambda _one, _, parts: len(parts) == 1,
    lambda one, _, parts: len(parts) == 2 and one.schema.lower() == parts[0].lower(),
    lambda one, wanted, _: one.bare.lower() == wanted.lower(),
)
"""What is most likely meant, first: of all with that name in lower case, by it and by its parts without quotes."""


async def find_relation(ask: Ask, wanted: str) -> Relation:
    """The table or view that a client calls so: as a statement would, or without quotes, or in another case where
    only one is named like that. Raises SqlError `not_found`, with the nearest names."""
    wanted = wanted.strip()
    parts = _split(wanted)
    last = parts[-1:]
    rows = await ask(_CANDIDATES, [wanted, *last]) if "\0" not in wanted and len(wanted) <= _LONGEST else []
    candidates = sorted(_Candidate(*row) for row in rows)
    for matches in _MATCHES:
        found = [one for one in candidates if matches(one, wanted, parts)]
        if len(found) > 1:
            names = fence([format_name(SqlName(one.name)) for one in found[:_SHOWN]])
            raise SqlError("ambiguous", "several tables or views are called so", f"Name one of them:\n{names}")
        if found:
            relations = await read_relations(ask, found[0].oid)
            if not relations:
                raise SqlError("not_found", "the table or view was removed just now")
            return relations[0]
    suggestion = _format_suggestion(await _find_tables(ask, wanted, wanted))
    suggestion = suggestion or "list_tables names those that there are."
    raise SqlError("not_found", "there is no table or view of that name", suggestion)


async def suggest_names(ask: Ask, state: str, sql: str, position: int) -> str:
    """What to try instead of the name at `position` in a statement, in characters, by the SQLSTATE that PostgreSQL
    gave for it; nothing where nothing is alike."""
    found = _QUALIFIED.match(sql, max(position, 0))
    parts = [_unquote(part) for part in found.groups() if part is not None] if found is not None else []
    if not parts:
        return ""
    match state:
        case "42P01":
            return _format_suggestion(await _find_tables(ask, ".".join(parts), parts[-1]))
        case "42703":
            return _format_suggestion(await _find_columns(ask, parts[-1], sql))
        case "42883":
            wanted = parts[-1]
            signatures = [one for (one,) in await ask(_SIGNATURES, wanted.lower())]
            if signatures:
                return f"There is, for other arguments:\n{fence(signatures[:_SHOWN])}"
            names = [name for (name,) in await ask(_FUNCTIONS)]
            return _format_suggestion([format_name(one) for one in find_nearest(wanted, names)])
    return ""


def _split(wanted: str) -> list[str]:
    """A name, or a schema and a name, without their quotes; nothing where it is neither."""
    found = _QUALIFIED.fullmatch(wanted)
    return [_unquote(part) for part in found.groups() if part is not None] if found is not None else []


def _unquote(part: str) -> str:
    return part[1:-1].replace('""', '"') if part.startswith('"') else part


async def _find_tables(ask: Ask, *wanted: str) -> Sequence[str]:
    names = [SqlName(name) for (name,) in await ask(_TABLE_NAMES)]
    for one in wanted:
        close = find_nearest(one, names)
        if close:
            return [format_name(name) for name in close]
    bare = {_split(name)[-1] if _split(name) else name: name for name in reversed(names)}
    return [format_name(bare[name]) for name in find_nearest(wanted[-1], bare)]


async def _find_columns(ask: Ask, wanted: str, sql: str) -> Sequence[str]:
    """Those of the tables that the statement names, or else of all."""
    words = {_unquote(word) for word in _IDENTIFIER.findall(sql.replace("\0", ""))}
    # PostgreSQL folds names without quotes to lower case.
    for tables in (sorted(words | {word.lower() for word in words}), None):
        having: dict[str, list[SqlName]] = {}
        for column, table in await ask(_COLUMN_NAMES, tables):
            having.setdefault(SqlName(column), []).append(SqlName(table))
        close = find_nearest(wanted, having)
        if close:
            return [f"{format_name(one)} (in {', '.join(map(format_name, having[one][:_TABLES]))})" for one in close]
    return ()


def _format_suggestion(close: Sequence[str]) -> str:
    return f"The nearest names are:\n{fence(close)}" if close else ""
