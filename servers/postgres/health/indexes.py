"""Suggests indexes that may speed up a statement, derived from the columns in its conditions.

If the extension hypopg is installed, the planner computes the cost of the statement with each suggested index.
"""

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, NamedTuple

import anyio

from servers.common.sql.errors import SqlError

from ..engine.deadline import Deadline
from ..engine.link import Ask
from ..sql import unquote

Node = Mapping[str, Any]
"""A step of a plan, as EXPLAIN writes it in JSON."""

_MAX_CANDIDATES = 5
"""Maximum number of indexes that are tried."""
_SAVEPOINT = "mcp_bundle_index"
_CLEANUP_SECONDS = 5.0
"""Maximum number of seconds for removing hypothetical indexes."""
_MAX_COST_FRACTION = 0.9
"""An index is suggested if the cost with it is less than this fraction of the cost without it."""
_CONDITIONS = ("Filter", "Hash Cond", "Merge Cond", "Join Filter", "Recheck Cond", "Index Cond")
_LITERAL = re.compile(r"'(?:[^']|'')*'")
_CAST = re.compile(
    r"::(?:\"(?:[^\"]|\"\")+\"|[\w.]+(?: (?:varying|precision|with(?:out)? time zone))?)(?:\([\d,]+\))?(?:\[\])*"
)
_IDENTIFIER = r'(?:"(?:[^"]|"")+"|[^\W\d][\w$]*)'
_PARENTHESIZED = re.compile(rf"(?<![\w\"])\(({_IDENTIFIER}\.{_IDENTIFIER})\)")
_COMPARED = re.compile(rf"({_IDENTIFIER})\.({_IDENTIFIER}) (=|<=?|>=?) ")
_COMPARED_AFTER = re.compile(rf" (=|<=?|>=?) ({_IDENTIFIER})\.({_IDENTIFIER})(?!\()")

_COLUMNS = """
    SELECT a.attname::pg_catalog.text, pg_catalog.quote_ident(a.attname)
    FROM pg_catalog.pg_attribute AS a JOIN pg_catalog.pg_type AS t ON t.oid = a.atttypid
    WHERE a.attrelid = $1::pg_catalog.oid AND a.attnum > 0 AND NOT a.attisdropped
        AND (t.typtype <> 'b' OR t.typcategory = 'A' OR EXISTS (
            SELECT FROM pg_catalog.pg_opclass AS o JOIN pg_catalog.pg_am AS m ON m.oid = o.opcmethod
            WHERE m.amname = 'btree' AND o.opcdefault AND (o.opcintype = t.oid OR EXISTS (
                SELECT FROM pg_catalog.pg_cast AS x WHERE x.castsource = t.oid AND x.casttarget = o.opcintype
                    AND x.castmethod = 'b' AND x.castcontext = 'i'))))"""
_EXTENSION = """
    SELECT pg_catalog.quote_ident(n.nspname)
    FROM pg_catalog.pg_extension AS x JOIN pg_catalog.pg_namespace AS n ON n.oid = x.extnamespace
    WHERE x.extname = 'hypopg' AND pg_catalog.has_schema_privilege(n.oid, 'USAGE')"""


class ScannedTable(NamedTuple):
    """A table that a plan scans completely."""

    oid: int
    name: str
    alias: str


class _Candidate(NamedTuple):
    """A possible index."""

    table: str
    columns: Sequence[str]

    @property
    def definition(self) -> str:
        """The table and the columns of the index, as in CREATE INDEX."""
        return f"{self.table} ({', '.join(self.columns)})"


async def suggest_indexes(
    ask: Ask, tables: Sequence[ScannedTable], nodes: Sequence[Node], find_cost: Callable[[], Awaitable[float]]
) -> list[str]:
    """Return notes on possible indexes of the `tables`, which a plan with these `nodes` scans; empty if there are no
    candidates. `find_cost` plans the statement again, and returns its cost. Raises SqlError."""
    conditions_in_plan = [node[title] for node in nodes for title in _CONDITIONS if title in node]
    # Remove literals, which may look like columns, and casts, which may surround columns.
    conditions = "\n".join(
        _PARENTHESIZED.sub(r"\1", _CAST.sub("", _LITERAL.sub("''", candidate))) for candidate in conditions_in_plan
    )
    candidates: list[_Candidate] = []
    for table in tables:
        columns: dict[str, str] = dict(await ask(_COLUMNS, table.oid))
        candidates += [
            candidate for candidate in _list_candidates(table, conditions, columns) if candidate not in candidates
        ]
    if not candidates:
        return []
    extension = await ask(_EXTENSION)
    if not extension:
        names = "; ".join(candidate.definition for candidate in candidates[:_MAX_CANDIDATES])
        return [f"an index might help, but was not tried, because hypopg is not installed: {names}"]
    return await _compare_costs(ask, extension[0][0], candidates[:_MAX_CANDIDATES], find_cost)


async def _compare_costs(
    ask: Ask, schema: str, candidates: Sequence[_Candidate], find_cost: Callable[[], Awaitable[float]]
) -> list[str]:
    """Return notes on the cost with each of the indexes. They are hypothetical: only the planner of this session sees
    them, and they are removed at the end."""
    old_cost = await find_cost()
    notes: list[tuple[float, str]] = []
    await ask(f"SAVEPOINT {_SAVEPOINT}")
    try:
        for candidate in candidates:
            await ask(f"SELECT {schema}.hypopg_reset()")
            await ask(f"SELECT 1 FROM {schema}.hypopg_create_index($1)", f"CREATE INDEX ON {candidate.definition}")  # noqa: S608
            cost = await find_cost()
            if cost < _MAX_COST_FRACTION * old_cost:
                notes.append(
                    (
                        cost,
                        f"with an index on {candidate.definition} the cost would be {cost:g} instead of {old_cost:g}",
                    )
                )
    finally:
        # Remove the hypothetical indexes: they outlive the transaction, and other calls will use the connection.
        deadline = Deadline(_CLEANUP_SECONDS)
        with anyio.CancelScope(shield=True), suppress(SqlError):
            await ask(f"ROLLBACK TO SAVEPOINT {_SAVEPOINT}", deadline=deadline)
            await ask(f"SELECT {schema}.hypopg_reset()", deadline=deadline)
    names = "; ".join(candidate.definition for candidate in candidates)
    return [note for _, note in sorted(notes)] or [f"none of these indexes would make it much cheaper: {names}"]


def _list_candidates(table: ScannedTable, conditions: str, columns: Mapping[str, str]) -> Iterator[_Candidate]:
    """Yield candidates with one column, those compared with = first, and then candidates with two columns, the first
    of which is compared with =."""
    equal_columns: dict[str, None] = {}
    other_columns: dict[str, None] = {}
    compared = [(alias, name, sign) for alias, name, sign in _COMPARED.findall(conditions)]
    compared += [(alias, name, sign) for sign, alias, name in _COMPARED_AFTER.findall(conditions)]
    for alias, name, sign in compared:
        column = columns.get(unquote(name))
        if unquote(alias) == table.alias and column is not None:
            (equal_columns if sign == "=" else other_columns)[column] = None
    single_columns = [*equal_columns, *(single for single in other_columns if single not in equal_columns)]
    pairs = [(first, second) for first in equal_columns for second in single_columns if first != second]
    # For two columns that are both compared with =, one order is enough.
    distinct_pairs = [pair for index, pair in enumerate(pairs) if pair[::-1] not in pairs[:index]]
    for columns_of_index in islice([*((single,) for single in single_columns), *distinct_pairs], 2 * _MAX_CANDIDATES):
        yield _Candidate(table.name, columns_of_index)
