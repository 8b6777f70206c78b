"""One statement that changes a database, in a transaction of its own."""

import sqlite3
import time
from collections import deque
from collections.abc import Callable, Collection
from contextlib import closing
from functools import partial
from typing import Any, NamedTuple

from typing_extensions import TypedDict

from servers.sqlite.access.policy import Policy
from servers.sqlite.access.stopping import Stop, patiently
from servers.sqlite.reading.pages import Page, Room, page
from servers.sqlite.reading.query import Query
from servers.sqlite.reading.texts import fenced

__all__ = ["Change", "ChangeResult", "change", "compiles"]

Committed = Callable[[Collection[str], bool], None]
"""Takes the tables that were changed, and whether the schema was."""


class ChangeResult(TypedDict):
    """What a statement did, and the rows that it returned."""

    affected: int
    columns: list[str]
    rows: list[tuple[Any, ...]]
    truncated: bool
    elapsed_ms: float


class Change(NamedTuple):
    """The same in both forms."""

    value: ChangeResult
    text: str


def compiles(sql: str, connection: sqlite3.Connection, stop: Stop) -> None:
    """Raises what running the statement would raise before it begins; does not run it."""
    patiently(stop, partial(connection, sql))


def change(
    query: Query, room: Room, policy: Policy, committed: Committed, connection: sqlite3.Connection, stop: Stop
) -> Change:
    """Runs the statement and commits it; what fails or is stopped changes nothing. Calls `committed` after that."""
    began = time.monotonic()
    patiently(stop, partial(_own, "BEGIN IMMEDIATE", policy, connection))
    try:
        policy.forget()
        with closing(connection.execute(query.sql, query.parameters)) as cursor:
            names = [column[0] for column in cursor.description or ()]
            shown, left = page(names, cursor, room)
            # It has done all its work only when its last row is fetched.
            deque(cursor, maxlen=0)
            affected = max(cursor.rowcount, 0)
        patiently(stop, partial(_own, "COMMIT", policy, connection))
    finally:
        if connection.in_transaction:
            _own("ROLLBACK", policy, connection)
    committed(frozenset(policy.changed), policy.defines)
    value: ChangeResult = {
        "affected": affected,
        "columns": names,
        "rows": shown.rows,
        "truncated": bool(left),
        "elapsed_ms": round((time.monotonic() - began) * 1_000, 2),
    }
    return Change(value, _text(value, shown))


def _own(sql: str, policy: Policy, connection: sqlite3.Connection) -> None:
    """Runs a statement of our own, which the policy has no word in."""
    connection.set_authorizer(None)
    try:
        connection.execute(sql)
    finally:
        connection.set_authorizer(policy)


def _text(value: ChangeResult, shown: Page) -> str:
    count = value["affected"]
    told = f"{count} row{'' if count == 1 else 's'} affected; {value['elapsed_ms']:g} ms"
    if not value["columns"]:
        return told
    return f"{told}{'; cut' * value['truncated']}\n{fenced((' | '.join(value['columns']), *shown.lines))}"
