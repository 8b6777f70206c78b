"""Rows of a CSV put into a table by COPY, which is made where there is none.

The text is read in a thread, some rows at a time, for a file may be slow. Each part is sent as soon as it is read.
"""

import re
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from itertools import islice

from anyio import to_thread

from servers.common.sql.errors import SqlError
from servers.common.sql.texts import SqlName
from servers.common.sql.write.consent import Consent, Figures
from servers.common.sql.write.csvs import Records, TypeInference
from servers.common.sql.write.imports import (
    FIRST,
    LAST,
    ONLY,
    Import,
    Imported,
    Pass,
    match_columns,
    name_columns,
    open_rows,
)
from servers.postgres.errors import PostgresError
from servers.postgres.schema.entries import Relation
from servers.postgres.schema.names import find_relation
from servers.postgres.sql import quote
from servers.postgres.write.counts import read_changes
from servers.postgres.write.session import Session

_TYPES = {"INTEGER": "bigint", "REAL": "numeric", "TEXT": "text"}
"""Of new columns. A number with a fraction is kept as it is written, and sums are exact."""
_BATCH = 1_000
"""Rows that are sent at once."""
_ESCAPES = str.maketrans({"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"})
_COLUMNS = """
    SELECT attname::pg_catalog.text, pg_catalog.format_type(atttypid, atttypmod) FROM pg_catalog.pg_attribute
    WHERE attrelid = $1::pg_catalog.oid AND attnum > 0 AND NOT attisdropped AND attgenerated = '' ORDER BY attnum"""
_NEW = "SELECT pg_catalog.to_regclass($1)::pg_catalog.text"
_NAME_BYTES = 63
"""What PostgreSQL keeps of a name; the rest it cuts off without an error."""


async def import_csv(wanted: Import, consent: Consent, session: Session) -> Imported | Figures:
    """Puts all rows into the table, in one transaction, or none.

    Gives figures, and changes nothing, where a user must agree to them first.

    An empty field is NULL. Raises SqlError, which names the row.
    """
    began = time.monotonic()
    is_there = await _find_table(session, wanted.table) is not None
    # To look through the whole text for types takes a while, in which others may write.
    types = [] if is_there else await _infer_types(session, wanted)
    async with session.transaction():
        found, before = await _find_table(session, wanted.table), await read_changes(session.ask)
        async with _open_rows(wanted, ONLY if is_there else LAST, session) as records:
            if found is not None:
                table, columns = found.name, match_columns(records, [*await session.ask(_COLUMNS, found.oid)])
            else:
                columns = name_columns(records, types or await _infer_types(session, wanted))
                table = await _create(session, wanted.table, columns)
            await _copy(session, table, [name for name, _ in columns], records)
        changes = (await read_changes(session.ask)).since(before)
        tables = {table, *(counts.table for counts in changes.tables.values())}
        rows = max(changes.total, records.count)
        figures = Figures(rows, (records.count,), tuple(sorted(tables)), found is None)
        if not consent.covers(figures):
            return figures
        await session.commit(figures)
    return Imported(table, found is None, records.count, columns, time.monotonic() - began)


async def _find_table(session: Session, name: str) -> Relation | None:
    try:
        return await find_relation(session.ask, name)
    except SqlError as error:
        if error.code != "not_found":
            raise
        return None


async def _create(session: Session, wanted: str, columns: Sequence[tuple[str, str]]) -> SqlName:
    """Makes the table; how PostgreSQL writes its name."""
    for name in (wanted, *(name for name, _ in columns)):
        if len(name.encode(errors="replace")) > _NAME_BYTES:
            raise SqlError("bad_csv", f"a name takes more than {_NAME_BYTES} bytes", quoted=[name])
    defined = ", ".join(f"{quote(name)} {kind}" for name, kind in columns)
    await session.ask(f"CREATE TABLE {quote(wanted)} ({defined})")
    ((name,),) = await session.ask(_NEW, quote(wanted))
    return SqlName(name)


async def _copy(session: Session, table: str, names: Sequence[str], records: Records) -> None:
    """Sends all rows. Raises SqlError, which names the row."""
    columns = ", ".join(map(quote, names))
    try:
        sql = f"COPY {table} ({columns}) FROM STDIN"
        await session.link.copy_in(sql, _format_rows(records), deadline=session.deadline)
        await session.ask("SET CONSTRAINTS ALL IMMEDIATE")
    except PostgresError as error:
        # The words are in any language, but the name of the table stands before the number of the row in all of them.
        row = re.search(r"\d+", error.context.partition(table)[2])
        raise error.at(f"row {int(row[0]):,}" if row else "") from None


async def _format_rows(records: Records) -> AsyncIterator[bytes]:
    rows = iter(records)
    while batch := await to_thread.run_sync(_format_batch, rows):
        yield batch


def _format_batch(rows: Iterator[Sequence[str]]) -> bytes:
    """The next rows as COPY takes them; nothing after the last."""
    try:
        return "".join([_format_row(row) for row in islice(rows, _BATCH)]).encode()
    except UnicodeEncodeError:
        raise SqlError("bad_csv", "the text holds half of a surrogate pair, which UTF-8 can't carry") from None


def _format_row(row: Sequence[str]) -> str:
    text = "\t".join(row)
    # Most rows have nothing to escape, which is seen much faster in all of the row.
    if "\\" in text or "\n" in text or "\r" in text or text.count("\t") >= len(row):
        row = [field.translate(_ESCAPES) for field in row]
    return "\t".join([field or r"\N" for field in row]) + "\n"


async def _infer_types(session: Session, wanted: Import) -> list[str]:
    async with _open_rows(wanted, FIRST, session) as records:
        found, rows = TypeInference(records.width), iter(records)
        while await to_thread.run_sync(lambda: found.look(list(islice(rows, _BATCH)))):
            """It can be called off between two parts."""
        return [_TYPES[kind] for kind in found.types]


@asynccontextmanager
async def _open_rows(wanted: Import, which: Pass, session: Session) -> AsyncIterator[Records]:
    try:
        with ExitStack() as stack:
            yield await to_thread.run_sync(stack.enter_context, open_rows(wanted, which, session.deadline))
    except PostgresError:
        raise
    except SqlError as error:
        raise error.at(session.deadline.where) from None
