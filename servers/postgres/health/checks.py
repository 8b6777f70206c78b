"""The health checks of a server and a database, each with a query and the text for its rows."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from servers.common.sql.texts import SqlName, format_name, shorten
from shared.text import join_lines

from ..engine.link import Ask
from . import queries
from .lines import format_ago, format_share, format_size, format_span

Row = tuple[Any, ...]
FormatRows = Callable[[Sequence[Row]], Iterator[str]]

_MAX_STATEMENT_LENGTH = 120
"""Maximum number of characters of another session's statement that are shown."""
_MAX_ROWS = 5
"""Maximum number of rows of each list that are shown."""
_LAGGING_BYTES = 16 << 20
"""Number of bytes by which a standby may lag behind the primary without a warning."""


class Check(NamedTuple):
    """A check, which is one query."""

    title: str
    query: str
    format_rows: FormatRows
    """Yields the lines of the report, given the rows of the query; no lines if there is no problem."""
    concerns_sessions: bool = False
    """True if the check reports other sessions, which not every role may see."""

    async def run(self, ask: Ask) -> list[str]:
        """Return the lines of the report. Raises SqlError."""
        return list(self.format_rows(await ask(self.query)))


CHECKS: list[Check] = []
"""All checks, in the order of the report."""


def _check(title: str, query: str, *, concerns_sessions: bool = False) -> Callable[[FormatRows], FormatRows]:
    """Add a check whose rows the decorated function formats."""

    def add(format_rows: FormatRows) -> FormatRows:
        CHECKS.append(Check(title, query, format_rows, concerns_sessions))
        return format_rows

    return add


def _shorten(words: str | None) -> str:
    return shorten(join_lines(words or ""), _MAX_STATEMENT_LENGTH)


def _count_rest(rows: Sequence[Row], shown: int = _MAX_ROWS) -> Iterator[str]:
    if len(rows) > shown:
        yield f"and {len(rows) - shown} more"


def _format_sql_name(name: str) -> str:
    return format_name(SqlName(name))


@_check("server", queries.SETTINGS)
def _format_settings(rows: Sequence[Row]) -> Iterator[str]:
    for version, started, size, *settings in rows:
        yield f"PostgreSQL {_shorten(version)}, started {format_ago(started)}; this database has {format_size(size)}"
        names = ("fsync", "full_page_writes", "autovacuum", "track_counts", "data_checksums")
        for name, value in zip(names, settings, strict=True):
            if value == "off":
                yield f"{'note' if name == 'data_checksums' else 'WARNING'}: {name} is off"


@_check("connections", queries.CONNECTIONS)
def _format_connections(rows: Sequence[Row]) -> Iterator[str]:
    for used, active, idle, limit, reserved in rows:
        yield f"{used} of {limit} are used ({active} active, {idle} idle in a transaction; {reserved} for superusers)"
        if used >= 0.8 * (limit - reserved):
            yield "WARNING: few are left; use a connection pool, or increase max_connections"


@_check("memory", queries.CACHE)
def _format_cache(rows: Sequence[Row]) -> Iterator[str]:
    for hits, reads, index_hits, index_reads, buffers, temporary, deadlocks in rows:
        of_indexes = format_share(index_hits, index_hits + index_reads)
        yield f"{format_share(hits, hits + reads)} of table pages came from memory, and {of_indexes} of index pages"
        yield f"shared_buffers is {buffers}"
        if hits + reads > 100_000 and hits < 0.9 * (hits + reads):
            yield ("WARNING: less than 90 %: frequently used data does not fit into memory, or is scanned too often")
        if temporary or deadlocks:
            yield f"{format_size(temporary)} were written to temporary files, and {deadlocks} deadlocks were broken"


@_check("long transactions", queries.TRANSACTIONS, concerns_sessions=True)
def _format_transactions(rows: Sequence[Row]) -> Iterator[str]:
    for pid, user, state, age, idle, held_back, query in rows[:_MAX_ROWS]:
        idle_span = f", idle for {format_span(idle)}" if state.startswith("idle") else ""
        holds = f", prevents the removal of rows that died in the last {held_back} transactions" if held_back else ""
        began = f"began {format_span(age)} ago{idle_span}{holds}"
        yield f"pid {pid}, {format_name(user)}: {state}, {began}: {_shorten(query)}"
    yield from _count_rest(rows)


@_check("sessions that wait for locks", queries.BLOCKED, concerns_sessions=True)
def _format_blocked(rows: Sequence[Row]) -> Iterator[str]:
    for pid, user, seconds, mode, relation, blockers, query in rows[:_MAX_ROWS]:
        on_relation = f" on {_format_sql_name(relation)}" if relation else ""
        wait = f"has waited {format_span(seconds)} for {mode or 'a lock'}{on_relation}, blocked by pid {blockers}"
        yield f"pid {pid}, {format_name(user)}, {wait}: {_shorten(query)}"
    yield from _count_rest(rows)


@_check("tables that need VACUUM or ANALYZE", queries.TABLES)
def _format_tables(rows: Sequence[Row]) -> Iterator[str]:
    for name, live, dead, vacuumed, analyzed, changed, size in rows[:_MAX_ROWS]:
        ages = f"vacuumed {format_ago(vacuumed)}, analyzed {format_ago(analyzed)}, {changed} changes since"
        yield f"{_format_sql_name(name)} ({format_size(size)}): {dead} dead and {live} live rows, {ages}"
    yield from _count_rest(rows)


@_check("age of transactions", queries.WRAPAROUND)
def _format_wraparound(rows: Sequence[Row]) -> Iterator[str]:
    for database, age, maximum, table, table_age in rows:
        name = format_name(database)
        yield f"the oldest transaction ID in {name} is {age:,} transactions old; autovacuum acts at {maximum:,}"
        if table is not None:
            yield f"the oldest table is {_format_sql_name(table)}: {table_age:,}"
        if age > 1_000_000_000:
            yield "WARNING: at about 2.1 billion the server stops accepting writes; find out why VACUUM can't keep up"


@_check("indexes", queries.INDEXES)
def _format_indexes(rows: Sequence[Row]) -> Iterator[str]:
    for kind, index, table, size, other in rows[: 3 * _MAX_ROWS]:
        same_as = f"; the same as {_format_sql_name(other)}" if other else ""
        yield f"{kind}: {_format_sql_name(index)} on {_format_sql_name(table)}, {format_size(size)}{same_as}"
    yield from _count_rest(rows, 3 * _MAX_ROWS)


@_check("sequences", queries.SEQUENCES)
def _format_sequences(rows: Sequence[Row]) -> Iterator[str]:
    for name, used, kind in rows:
        if name is None:
            yield f"not allowed for this role: {used:.0f} sequences"
            continue
        yield f"WARNING: {_format_sql_name(name)} ({kind}) has used {100 * used:.1f} % of its numbers"


@_check("replication", queries.REPLICATION)
def _format_replication(rows: Sequence[Row]) -> Iterator[str]:
    for kind, name, state, lag, seconds in rows[: 2 * _MAX_ROWS]:
        behind = "" if lag is None else f", {format_size(lag)} behind"
        late = "" if seconds is None else f", {format_span(seconds)} late"
        warning = "WARNING: " if (lag or 0) > _LAGGING_BYTES else ""
        yield f"{warning}{kind} {format_name(name)}: {state}{behind}{late}"
