"""Imports the rows of a file into a table with COPY. A missing table is created.

The file is read in a thread, because that may be slow. Each batch of rows is sent as soon as it has been read.
"""

import re
import time
from collections.abc import AsyncIterator, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack

from anyio import to_thread

from servers.common.sql.errors import SqlError
from servers.common.sql.importing.columns import DAY_OR_MONTH, Column
from servers.common.sql.importing.imports import Import, ImportResult, match_columns, open_rows
from servers.common.sql.importing.readings import Kind
from servers.common.sql.importing.records import Records
from servers.common.sql.importing.survey import Plan, TargetTable, survey
from servers.common.sql.texts import SqlName
from servers.common.sql.write.consent import Consent, Figures

from ..errors import PostgresError
from ..schema.entries import Relation
from ..schema.names import find_relation
from ..sql import quote
from .counts import read_changes
from .session import Session

_TYPES: Mapping[Kind, str] = {
    "integer": "bigint",
    "decimal": "numeric",
    "date": "date",
    "timestamp": "timestamp",
    "timestamptz": "timestamp with time zone",
    "boolean": "boolean",
    "text": "text",
}
"""The PostgreSQL types of new columns. A decimal becomes numeric, so that it is stored exactly."""
_PARSED_TYPES = re.compile("bigint|integer|smallint|numeric|real|double|date|timestamp|boolean")
"""The beginnings of types whose values PostgreSQL parses as numbers, dates or booleans. Other types store the fields
as written."""
_DAY_TYPE = re.compile("date|timestamp")
_ESCAPES = str.maketrans({"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"})
_ESCAPED = re.compile(r"[\\\t\n\r]")
_NULL = r"\N"
_COLUMNS = """
    SELECT attname::pg_catalog.text, pg_catalog.format_type(atttypid, atttypmod) FROM pg_catalog.pg_attribute
    WHERE attrelid = $1::pg_catalog.oid AND attnum > 0 AND NOT attisdropped AND attgenerated = '' ORDER BY attnum"""
_TABLE_NAME = "SELECT pg_catalog.to_regclass($1)::pg_catalog.text"
"""Selects the name of a table as PostgreSQL writes it, given its quoted name."""
_SEQUENCES = """
    SELECT pg_catalog.quote_ident(a.attname),
        pg_catalog.quote_literal(pg_catalog.pg_get_serial_sequence($1, a.attname))
    FROM pg_catalog.pg_attribute AS a
    WHERE a.attrelid = $1::pg_catalog.regclass AND a.attname = ANY ($2::pg_catalog.text[])
        AND pg_catalog.pg_get_serial_sequence($1, a.attname) IS NOT NULL ORDER BY a.attnum"""
_CONTINUE = "SELECT setval({sequence}, max({column})) FROM {table}"
_MAX_NAME_BYTES = 63
"""Maximum number of bytes in a name; PostgreSQL cuts off the rest without an error."""
_MAX_COLUMNS = 1_600
"""Maximum number of columns of a table (https://www.postgresql.org/docs/current/limits.html)."""

Columns = Sequence[tuple[str, str]]
"""Columns of a table, each as its name and its type in PostgreSQL."""


async def import_csv(request: Import, consent: Consent, session: Session) -> ImportResult | Figures:
    """Insert all rows of the file into the table in one transaction.

    If the user must confirm the changes first, roll back and return the figures to show. Raises SqlError, with the
    number of the row if PostgreSQL names it.
    """
    started_at = time.monotonic()
    relation, surveyed_columns = await _find_table(session, request.table)
    # The survey runs outside the transaction, since it takes a while, in which others must be able to write.
    plan = await _survey(request, surveyed_columns, session)
    if request.preview:
        columns = _match_columns(plan, surveyed_columns) if relation else _new_columns(plan)
        name, duration = relation.name if relation else request.table, time.monotonic() - started_at
        return ImportResult(name, relation is None, plan.rows, columns, duration, plan.decisions, plan.first_rows)
    async with session.transaction():
        (relation, existing), before = await _find_table(session, request.table), await read_changes(session.ask)
        # Somebody may have altered or created the table during the survey.
        if existing != surveyed_columns:
            plan = await _survey(request, existing, session)
        columns = _match_columns(plan, existing) if relation else _new_columns(plan)
        table = relation.name if relation else await _create_table(session, request.table, columns)
        await _copy(session, table, request, plan, columns)
        decisions = [*plan.decisions, *await _note_sequences(session, table, columns)]
        changes = (await read_changes(session.ask)).subtract(before)
        tables = {table, *(counts.table for counts in changes.tables.values())}
        figures = Figures(
            # PostgreSQL counts more rows if triggers change some, but none of a foreign table.
            rows=max(changes.total, plan.rows),
            affected=(plan.rows,),
            tables=tuple(sorted(tables)),
            schema_changed=relation is None,
        )
        if not consent.covers(figures):
            return figures
        await session.commit(figures)
    return ImportResult(table, relation is None, plan.rows, columns, time.monotonic() - started_at, decisions)


async def _find_table(session: Session, name: str) -> tuple[Relation | None, Columns]:
    """Return the table with this name, None if there is none, and its columns except generated ones."""
    try:
        relation = await find_relation(session.ask, name)
    except SqlError as error:
        if error.code != "not_found":
            raise
        return None, []
    return relation, [*await session.ask(_COLUMNS, relation.oid)]


async def _survey(request: Import, columns: Columns, session: Session) -> Plan:
    target = TargetTable(
        columns,
        keeps_text=lambda declared, _kind: _PARSED_TYPES.match(declared) is None,
        name_bytes=_MAX_NAME_BYTES,
        max_columns=_MAX_COLUMNS,
    )
    steps = survey(request.opener, request.format_request, target, session.deadline)
    # Each step runs in a thread of its own call, so that the survey can be cancelled between two steps.
    plan: Plan | None = None
    while plan is None:
        plan = await to_thread.run_sync(_advance, steps)
    return plan


def _advance(steps: Generator[None, None, Plan]) -> Plan | None:
    """Take one step of the survey. Return the plan after the last step, otherwise None."""
    try:
        next(steps)
    except StopIteration as end:
        plan: Plan = end.value
        return plan
    return None


def _new_columns(plan: Plan) -> Columns:
    return [(column.name, _TYPES[column.kind]) for column in plan.columns]


def _match_columns(plan: Plan, existing: Columns) -> Columns:
    """Return the column of the table for each column of the file. Raises SqlError if it is unclear whether dates
    begin with the day or the month, since PostgreSQL would read them according to DateStyle."""
    columns = match_columns(plan, existing)
    for column, (name, declared) in zip(plan.columns, columns, strict=True):
        if column.note.startswith(DAY_OR_MONTH) and _DAY_TYPE.match(declared):
            raise SqlError("bad_csv", column.note, quoted=[f"column {name}"])
    return columns


async def _create_table(session: Session, table: str, columns: Columns) -> SqlName:
    """Create the table, and return its name as PostgreSQL writes it."""
    if len(table.encode(errors="replace")) > _MAX_NAME_BYTES:
        raise SqlError("bad_csv", f"the table name takes more than {_MAX_NAME_BYTES} bytes", quoted=[table])
    definitions = ", ".join(f"{quote(name)} {declared}" for name, declared in columns)
    await session.ask(f"CREATE TABLE {quote(table)} ({definitions})")
    ((name,),) = await session.ask(_TABLE_NAME, quote(table))
    return SqlName(name)


async def _copy(session: Session, table: str, request: Import, plan: Plan, columns: Columns) -> None:
    """Send all rows to PostgreSQL. Raises SqlError, with the number of the row if PostgreSQL names it."""
    names = ", ".join(quote(name) for name, _ in columns)
    try:
        with ExitStack() as stack:
            records = await to_thread.run_sync(stack.enter_context, open_rows(request, plan, session.deadline))
            rows = _format_rows(records, plan.columns)
            await session.link.copy_in(f"COPY {table} ({names}) FROM STDIN", rows, deadline=session.deadline)
        await session.ask("SET CONSTRAINTS ALL IMMEDIATE")
    except PostgresError as error:
        # The context of the error may be in any language, but the number of the row always follows the table's name.
        row = re.search(r"\d+", error.context.partition(table)[2])
        raise error.add_place(f"row {int(row[0]):,}" if row else "") from None


async def _note_sequences(session: Session, table: str, columns: Columns) -> list[str]:
    """Return a note for each column that a sequence numbers, since COPY does not advance the sequence: the next row
    that is inserted without a number may get one that was imported."""
    numbered = await session.ask(_SEQUENCES, table, [name for name, _ in columns])
    return [
        f"{column} has a sequence, which does not continue after the imported numbers: "
        + _CONTINUE.format(sequence=sequence, column=column, table=table)
        for column, sequence in numbered
    ]


async def _format_rows(records: Records, columns: Sequence[Column]) -> AsyncIterator[bytes]:
    batches = iter(records)
    while batch := await to_thread.run_sync(_format_batch, batches, columns):
        yield batch


def _format_batch(batches: Iterator[Sequence[Sequence[str]]], columns: Sequence[Column]) -> bytes:
    """Return the next batch of rows in COPY's format; empty after the last one."""
    batch = next(batches, None)
    if batch is None:
        return b""
    converted: list[Sequence[str]] = []
    for column, fields in zip(columns, zip(*batch, strict=True), strict=False):
        # Most columns contain nothing to escape. Checking all fields of a column at once is much faster.
        if column.reading is None and _ESCAPED.search("".join(fields)):
            converted.append([_NULL if field in column.nulls else field.translate(_ESCAPES) for field in fields])
        else:
            converted.append(column.convert(fields, _NULL))
    return "".join([f"{row}\n" for row in map("\t".join, zip(*converted, strict=True))]).encode()
