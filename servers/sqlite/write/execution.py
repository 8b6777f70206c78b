"""Runs the statements of a call, to commit them or to preview their changes."""

import time
from collections.abc import Sequence
from contextlib import nullcontext

from servers.common.sql.errors import SqlError
from servers.common.sql.write.consent import Consent, Figures
from servers.common.sql.write.results import FormattedResult, ResponseLimits, Statement, make_result, sum_figures

from .previews import Preview
from .replacing import ReplacedRows
from .session import Session
from .statements import run_all


def execute(
    statements: Sequence[Statement], limits: ResponseLimits, only_tables: bool, consent: Consent, session: Session
) -> FormattedResult | Figures:
    """Run the statements in one transaction and commit it.

    If the user must confirm the changes first, roll back and return the figures to show. If `only_tables`, the
    statements may only create tables.
    """
    started_at = time.monotonic()
    # Counting the rows that REPLACE deletes takes time, so only do it if the user may have to confirm their number.
    counting = nullcontext() if consent.rows is None else ReplacedRows(session)
    with counting as replaced, session.transaction():
        with session.policy.allow_only_tables() if only_tables else nullcontext():
            effects = run_all(session, statements, limits.rows, replaced=replaced)
        if only_tables and not session.policy.changes_schema:
            raise SqlError("refused", "the statement is not a CREATE TABLE", "Use read_query or write_query.")
        figures = sum_figures(effects)
        if not consent.covers(figures):
            return figures
        result = make_result(effects, None, time.monotonic() - started_at, limits.max_bytes)
        session.commit(figures)
    return result


def dry_run(statements: Sequence[Statement], limits: ResponseLimits, session: Session) -> FormattedResult:
    """Run the statements in one transaction, return what they have changed, and roll it back."""
    started_at = time.monotonic()
    with Preview(session, limits.rows) as preview, session.transaction():
        effects = run_all(session, statements, limits.rows, preview)
        return make_result(effects, preview.changes, time.monotonic() - started_at, limits.max_bytes)
