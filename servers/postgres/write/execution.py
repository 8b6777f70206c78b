"""Runs the statements of a call, to commit them or to preview their changes."""

import time
from collections.abc import Sequence

from servers.common.sql.errors import SqlError
from servers.common.sql.write.consent import Consent, Figures
from servers.common.sql.write.results import FormattedResult, ResponseLimits, Statement, make_result, sum_figures

from .allowed import check_change, check_table
from .previews import show_changes
from .session import Session
from .statements import run_all

_TABLE_OIDS = "SELECT oid FROM pg_catalog.pg_class WHERE relkind IN ('r', 'm')"


async def execute(
    statements: Sequence[Statement], limits: ResponseLimits, consent: Consent, session: Session, *, only_tables: bool
) -> FormattedResult | Figures:
    """Run the statements in one transaction and commit it.

    If the user must confirm the changes first, roll back and return the figures to show. If `only_tables`, the
    statements may only create tables.
    """
    started_at = time.monotonic()
    async with session.transaction():
        for statement in statements if only_tables else ():
            check_table(check_change(statement.sql, session.allowed))
        existing = {oid for (oid,) in await session.ask(_TABLE_OIDS)} if only_tables else set()
        batch = await run_all(session, statements, limits.rows)
        if existing.intersection(batch.changes.tables):
            raise SqlError("refused", "the statement changes rows of other tables", "Use write_query.")
        figures = sum_figures(batch.effects)
        if not consent.covers(figures):
            return figures
        result = make_result(batch.effects, None, time.monotonic() - started_at, limits.max_bytes)
        await session.commit(figures)
    return result


async def dry_run(statements: Sequence[Statement], limits: ResponseLimits, session: Session) -> FormattedResult:
    """Run the statements in one transaction, return what they have changed, and roll it back.

    Values that the statements took from sequences remain used, since PostgreSQL does not roll those back.
    """
    started_at = time.monotonic()
    async with session.transaction():
        batch = await run_all(session, statements, limits.rows)
        changes = await show_changes(session, batch.changes, limits.rows)
        return make_result(batch.effects, changes, time.monotonic() - started_at, limits.max_bytes)
