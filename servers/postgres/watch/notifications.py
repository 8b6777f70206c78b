"""Triggers that report changes with NOTIFY, if the operator allows them (--watch-triggers).

Each watched table gets a trigger. For each statement that changes rows of the table, the trigger sends a
notification, which PostgreSQL delivers once the change is committed.

All triggers call one function in the schema `mcp_watch`. They stay when the watch ends, because other MCP servers may
need them, and removing a trigger locks its table. `DROP SCHEMA mcp_watch CASCADE` removes all of them.
"""

from collections.abc import AsyncIterator
from functools import partial
from typing import NamedTuple

from servers.common.sql.errors import SqlError

from ..engine.deadline import Deadline
from ..engine.link import Ask, Link
from .polling import WATCH_SCHEMA

_LOCK_SECONDS = 1
"""Seconds to wait for the table lock that CREATE TRIGGER needs. It is short, because other sessions that need a lock
on the table queue behind this one."""
_EXISTING = f"""
    SELECT pg_catalog.to_regprocedure('{WATCH_SCHEMA}.tell()') IS NOT NULL, EXISTS (
        SELECT FROM pg_catalog.pg_trigger WHERE tgname = '{WATCH_SCHEMA}' AND tgrelid = $1::pg_catalog.oid)"""  # noqa: S608
# The payload is an oid and not a name, since a payload has at most 8,000 bytes.
_FUNCTION = (
    f"CREATE SCHEMA IF NOT EXISTS {WATCH_SCHEMA}",
    f"""
    CREATE OR REPLACE FUNCTION {WATCH_SCHEMA}.tell() RETURNS pg_catalog.trigger LANGUAGE plpgsql AS $$
    BEGIN
      PERFORM pg_catalog.pg_notify('{WATCH_SCHEMA}', TG_RELID::pg_catalog.text);
      RETURN NULL;
    END $$""",
    f"""
    COMMENT ON SCHEMA {WATCH_SCHEMA} IS
    'Notifies MCP servers of changes (--watch-triggers). DROP SCHEMA {WATCH_SCHEMA} CASCADE removes all of it.'""",
)
_TRIGGER = """
    CREATE TRIGGER {own} AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON {table}
    FOR EACH STATEMENT EXECUTE FUNCTION {own}.tell()"""
_MAX_TRIES = 2
"""Number of attempts. There are two, because another MCP server may create the same trigger at the same time."""


class ChangeNotification(NamedTuple):
    """The notification that a statement has changed rows of a table."""

    backend: int
    """The process id of the PostgreSQL session that ran the statement."""
    table: int
    """The oid of the table."""


class Trigger(NamedTuple):
    """Whether a table has the trigger."""

    exists: bool
    is_new: bool
    """True if `ensure_trigger` has just created it."""


async def ensure_trigger(link: Link, table: int, deadline: Deadline) -> Trigger:
    """Create the trigger on the table with this oid, unless it exists.

    If the role may not create it, or the table stays locked, the trigger does not exist afterwards. Raises SqlError
    if the connection broke.
    """
    for _ in range(_MAX_TRIES):
        ((has_function, has_trigger),) = await link.ask(_EXISTING, table, deadline=deadline)
        if has_trigger:
            return Trigger(True, False)
        try:
            await _create(link, table, deadline, with_function=not has_function)
        except SqlError as error:
            if link.is_broken:
                raise
            if error.code == "busy":
                break
        else:
            return Trigger(True, True)
    return Trigger(False, False)


async def _create(link: Link, table: int, deadline: Deadline, *, with_function: bool) -> None:
    ask = partial(link.ask, deadline=deadline)
    async with link.transaction(deadline, "READ WRITE"):
        # CREATE TRIGGER takes a lock that blocks all writers (SHARE ROW EXCLUSIVE).
        await ask(f"SET LOCAL lock_timeout = '{_LOCK_SECONDS}s'")
        for statement in _FUNCTION if with_function else ():
            await ask(statement)
        ((name,),) = await ask("SELECT $1::pg_catalog.oid::pg_catalog.regclass::pg_catalog.text", table)
        await ask(_TRIGGER.format(own=WATCH_SCHEMA, table=name))
        await ask("COMMIT")


async def listen(ask: Ask) -> None:
    """Make PostgreSQL send the notifications of the triggers to the connection."""
    await ask(f"LISTEN {WATCH_SCHEMA}")


async def wait_for_changes(link: Link) -> AsyncIterator[ChangeNotification]:
    """Yield the notifications of the triggers. Raises SqlError with code `unavailable` when the connection ends."""
    while True:
        await link.wait_for_notifications()
        while link.notifications:
            notification = link.notifications.popleft()
            yield ChangeNotification(notification.be_pid, int(notification.extra))
