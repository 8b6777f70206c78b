"""Statements run for good, run to see what they would do, and definitions of tables."""

import time
from collections.abc import Sequence
from contextlib import nullcontext
from typing import NamedTuple

from servers.sqlite.errors import SqliteError
from servers.sqlite.reading.pages import Room
from servers.sqlite.writing.consent import Consent, Figures
from servers.sqlite.writing.previews import Preview
from servers.sqlite.writing.results import Written, written
from servers.sqlite.writing.session import Session
from servers.sqlite.writing.statements import Statement, figures_of, run_all

__all__ = ["Answering", "dry_run", "execute"]


class Answering(NamedTuple):
    """What one answer may have."""

    room: Room
    """For the rows."""
    max_bytes: int
    """For all of it, in both forms."""


def execute(
    statements: Sequence[Statement], answering: Answering, only_tables: bool, consent: Consent, session: Session
) -> Written | Figures:
    """Runs the statements in one transaction and commits it; gives figures, and changes nothing, where a user must
    agree to them first.

    With `only_tables` they may define tables and nothing else.
    """
    began = time.monotonic()
    with session.transaction():
        with session.policy.only_tables() if only_tables else nullcontext():
            effects = run_all(session, statements, answering.room)
        if only_tables and not session.policy.defines:
            raise SqliteError("refused", "the statement is no CREATE TABLE", "Use read_query or write_query.")
        figures = figures_of(effects)
        if not consent.covers(figures):
            return figures
        done = written(effects, None, time.monotonic() - began, answering.max_bytes)
        session.commit(figures)
    return done


def dry_run(statements: Sequence[Statement], answering: Answering, session: Session) -> Written:
    """Runs the statements in one transaction, sees what changes, and rolls it back."""
    began = time.monotonic()
    with Preview(session, answering.room) as preview, session.transaction():
        effects = run_all(session, statements, answering.room, preview)
        return written(effects, preview.changes, time.monotonic() - began, answering.max_bytes)
