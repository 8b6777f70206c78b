"""Describes one table or view in full: its columns, keys, indexes, triggers, sample rows and statistics."""

import sqlite3
from contextlib import closing

from servers.common.sql.errors import SqlError
from servers.common.sql.query.pages import AnswerLimits
from servers.common.sql.schema.lines import ByteBudget
from servers.common.sql.schema.records import Entry
from servers.common.sql.schema.table import (
    FRAME_BYTES,
    MAX_CELL_BYTES,
    SAMPLE_SHARE,
    Sample,
    TableDescription,
    TableFacts,
    TableRequest,
    describe_facts,
    fit_statistics,
)

from ..engine.deadline import StatementDeadline
from ..engine.entries import find_options, get_entry, hold_snapshot
from ..engine.sql import select
from ..paging import fill_page
from .columns import (
    compute_statistics,
    read_columns,
    read_foreign_keys,
    read_indexes,
    read_row_estimates,
    read_triggers,
)

_OPTIONS = {"STRICT": "STRICT", "ROWID": "WITHOUT ROWID"}
"""The options of a table that are shown, by a word that only they contain."""


def describe(
    request: TableRequest, limits: AnswerLimits, connection: sqlite3.Connection, deadline: StatementDeadline
) -> TableDescription:
    """Describe the table or view, within the limits. Raises SqlError, with code `not_found` and the most similar
    names if there is no such table."""
    with hold_snapshot(connection, deadline):
        entry = get_entry(connection, request.table)
        columns, problem = read_columns(connection, entry.name)
        keys, options = read_foreign_keys(connection), find_options(entry)
        facts = TableFacts(
            entry=entry,
            properties=[words for option, words in _OPTIONS.items() if option in options],
            rows_estimated=read_row_estimates(connection).get(entry.name),
            columns=columns,
            foreign_keys=[key for key in keys if key["table"] == entry.name],
            referenced_by=[key for key in keys if key["to_table"].lower() == entry.name.lower()],
            indexes=[index for _, index in read_indexes(connection, entry.name)],
            triggers=read_triggers(connection, entry.name),
            sections={},
            problem=problem,
        )
        budget = ByteBudget(limits.bytes - FRAME_BYTES)
        extras_budget = budget.split_off(1 / 2) if request.sample or request.statistics else ByteBudget(0)
        description = describe_facts(facts, budget)
        if request.sample and problem is None:
            part = extras_budget.split_off(1 / 2) if request.statistics else extras_budget
            # `fill_page` counts each row as text and as structured content, but a sample is only shown as text.
            sample_limits = AnswerLimits(request.sample, 2 * part.left, min(limits.cell_bytes, MAX_CELL_BYTES))
            with deadline.at_most(deadline.timeout * SAMPLE_SHARE):
                description["sample"] = _read_sample(entry, sample_limits, connection)
            if description["sample"] is None:
                description["left_out"]["sample"] = request.sample
        if request.statistics and problem is None:
            statistics = compute_statistics(entry, description["columns"], connection, deadline)
            description["statistics"] = fit_statistics(statistics, extras_budget)
    return description


def _read_sample(entry: Entry, limits: AnswerLimits, connection: sqlite3.Connection) -> Sample | None:
    """Return the first rows; None if not even one row fits."""
    with closing(connection.execute(select("*", entry.name, f"LIMIT {limits.rows}"))) as cursor:
        names = [column[0] for column in cursor.description]
        try:
            page, _ = fill_page(names, cursor, limits)
        except SqlError as error:
            if error.code != "too_large":
                raise
            return None
    return {"columns": names, "rows": page.rows}
