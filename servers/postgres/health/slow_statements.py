"""Lists the statements that take the most time, as measured by the extension pg_stat_statements."""

from servers.common.sql.texts import shorten
from shared.text import format_count, join_lines

from ..engine.link import Ask
from .lines import format_share

_MAX_ROWS = 10
"""Maximum number of statements in each list."""
_MAX_STATEMENT_LENGTH = 300
"""Maximum number of characters in a statement."""
_MISSING = (
    "pg_stat_statements is not installed in this database, or this role may not use its schema. The operator can add "
    "it to shared_preload_libraries, restart the server, and run CREATE EXTENSION pg_stat_statements here."
)
_NOT_LOADED = "pg_stat_statements is installed, but not in shared_preload_libraries, so it counts nothing."
_HIDDEN = "Statements of other roles are hidden from this one: the operator can GRANT pg_read_all_stats to it."

_EXTENSION = """
    SELECT pg_catalog.quote_ident(n.nspname),
        EXISTS (SELECT FROM pg_catalog.pg_attribute AS a WHERE a.attname = 'total_exec_time'
            AND a.attrelid = (SELECT c.oid FROM pg_catalog.pg_class AS c
                WHERE c.relnamespace = n.oid AND c.relname = 'pg_stat_statements')),
        pg_catalog.current_setting('pg_stat_statements.max', true) IS NOT NULL,
        pg_catalog.pg_has_role(current_user, 'pg_read_all_stats', 'USAGE')
    FROM pg_catalog.pg_extension AS x JOIN pg_catalog.pg_namespace AS n ON n.oid = x.extnamespace
    WHERE x.extname = 'pg_stat_statements' AND pg_catalog.has_schema_privilege(n.oid, 'USAGE')"""
_SLOWEST = """
    SELECT t.* FROM (
        SELECT s.queryid, s.query, s.calls, s.rows, {total}::pg_catalog.float8, {mean}::pg_catalog.float8,
            s.shared_blks_hit, s.shared_blks_read, s.temp_blks_written,
            ({total} / nullif(pg_catalog.sum({total}) OVER (), 0))::pg_catalog.float8
        FROM {schema}.pg_stat_statements AS s JOIN pg_catalog.pg_database AS d ON d.oid = s.dbid
        WHERE d.datname = pg_catalog.current_database() ORDER BY {order} DESC
    ) AS t WHERE t.queryid IS NOT NULL LIMIT {rows}"""


async def list_slow_statements(ask: Ask) -> list[str]:
    """List the statements with the most total time, and those with the longest average time, one line each.

    If the extension is missing, return the steps to enable it. Raises SqlError.
    """
    extension = await ask(_EXTENSION)
    if not extension:
        return [_MISSING]
    ((schema, is_new, is_loaded, sees_all),) = extension
    if not is_loaded:
        return [_NOT_LOADED]
    columns = ("s.total_exec_time", "s.mean_exec_time") if is_new else ("s.total_time", "s.mean_time")
    lines: list[str] = [] if sees_all else [_HIDDEN]
    for title, order in zip(("by total time", "by time per call"), columns, strict=True):
        statistics_query = _SLOWEST.format(
            total=columns[0], mean=columns[1], schema=schema, order=order, rows=_MAX_ROWS
        )
        lines.append(f"{title}:")
        for number, query, calls, rows_given, total, mean, hit, read, written, share in await ask(statistics_query):
            spilled = f", {written} temporary pages" if written else ""
            lines.append(
                f"  {total:.0f} ms in {format_count(calls, 'call')} ({100 * (share or 0):.1f} % of all, "
                f"{mean:.2f} ms each), "
                f"{rows_given / max(calls, 1):.1f} rows each, {format_share(hit, hit + read)} from memory{spilled} "
                f"(queryid {number}): {shorten(join_lines(query), _MAX_STATEMENT_LENGTH)}"
            )
    return lines
