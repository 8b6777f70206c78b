"""Describes one table or view in full: its columns, keys, indexes, triggers, sample rows and statistics."""

from collections.abc import Sequence

import anyio

from servers.common.sql.errors import SqlError
from servers.common.sql.query.pages import AnswerLimits
from servers.common.sql.schema.lines import ByteBudget
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

from ..catalog import Session
from ..paging import fill_page
from .columns import read_columns
from .entries import Relation
from .indexes import read_foreign_keys, read_indexes, read_references
from .names import find_relation
from .sections import read_details
from .statistics import ReadableColumn, compute_statistics, read_readable_columns

_STATISTICS_SHARE = 0.5
"""The share of a call's timeout that statistics may take."""


async def describe(
    request: TableRequest, limits: AnswerLimits, session: Session, max_seconds: float
) -> TableDescription:
    """Describe the table or view within the limits. The whole call may take `max_seconds`.

    The sample and the statistics are read last, because the transaction may be unusable after them. Raises SqlError,
    with code `not_found` and the most similar names if there is no such table.
    """
    relation = await find_relation(session.ask, request.table)
    ask, oid = session.ask, relation.oid
    relation_columns = await read_columns(ask, oid)
    details = await read_details(ask, relation)
    facts = TableFacts(
        entry=relation.entry._replace(sql=details.sql),
        properties=details.properties,
        rows_estimated=relation.rows,
        columns=relation_columns.get(oid, []),
        foreign_keys=await read_foreign_keys(ask, oid),
        referenced_by=await read_references(ask, oid),
        indexes=[index for _, index in await read_indexes(ask, oid)],
        triggers=details.triggers,
        sections=details.sections,
        problem=None,
    )
    budget = ByteBudget(limits.bytes - FRAME_BYTES)
    extras_budget = budget.split_off(1 / 2) if request.sample or request.statistics else ByteBudget(0)
    sample_budget = extras_budget.split_off(1 / 2) if request.statistics else extras_budget
    description = describe_facts(facts, budget)
    columns: Sequence[ReadableColumn] = ()
    try:
        if request.sample or request.statistics:
            columns = await read_readable_columns(session, relation)
        if request.sample:
            # `fill_page` counts each row as text and as structured content, but a sample is only shown as text.
            sizes = AnswerLimits(request.sample, 2 * sample_budget.left, min(limits.cell_bytes, MAX_CELL_BYTES))
            with anyio.move_on_after(max_seconds * SAMPLE_SHARE):
                description["sample"] = await _read_sample(relation, columns, sizes, session)
            if description["sample"] is None:
                description["left_out"]["sample"] = request.sample
        if request.statistics and columns:
            statistics = await compute_statistics(session, relation, columns, max_seconds * _STATISTICS_SHARE)
            description["statistics"] = fit_statistics(statistics, extras_budget)
    except SqlError as error:
        if "sample" in description["left_out"]:
            # The query for the sample was cancelled, so the transaction is unusable.
            description["left_out"]["statistics"] = len(columns)
            return description
        # For example, the view reads a table that its owner may not read, or divides by zero.
        description["problem"] = error.line
    return description


async def _read_sample(
    relation: Relation, columns: Sequence[ReadableColumn], limits: AnswerLimits, session: Session
) -> Sample | None:
    """Return the first rows of the relation; None if not even one row fits, or if the role may read no column."""
    if not columns:
        return None
    query = f"SELECT {', '.join(column.sql for column in columns)} FROM {relation.name} LIMIT {limits.rows}"  # noqa: S608
    try:
        filled = await fill_page(session, query, (), limits)
    except SqlError as error:
        if error.code != "too_large":
            raise
        return None
    return {"columns": filled.names, "rows": filled.page.rows}
