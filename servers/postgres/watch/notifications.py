"""Notices of changes from triggers, if the operator allows them.

Each watched table has a trigger that notifies listeners of each statement that changes rows, once it is committed.

All triggers belong to the schema `mcp_watch` and stay after the watch ends, because other servers may need them, and
removing one locks its table. `DROP SCHEMA mcp_watch CASCADE` removes every trace.
"""

from collections.abc import AsyncIterator
from functools import partial
from typing import NamedTuple

from servers.common.sql.errors import SqlError
from servers.postgres.engine.deadline import Deadline
from servers.postgres.engine.link import Ask, Link
from servers.postgres.watch.polling import OWN_SCHEMA

_LOCK_SECONDS = 1
"""Seconds to wait for a table lock to create a trigger. During that time, other sessions queue behind it."""
_EXISTING = f"""
    SELECT pg_catalog.to_regprocedure('{OWN_SCHEMA}.tell()') IS NOT NULL, EXISTS (
        SELECT FROM pg_catalog.pg_trigger WHERE tgname = '{OWN_SCHEMA}' AND tgrelid = $1::pg_catalog.oid)"""  # noqa: S608
# A payload has at most 8,000 bytes, which names might exceed.
_FUNCTION = (
    f"CREATE SCHEMA IF NOT EXISTS {OWN_SCHEMA}",
    f"""
    CREATE OR REPLACE FUNCTION {OWN_SCHEMA}.tell() RETURNS pg_catalog.trigger LANGUAGE plpgsql AS $$
    BEGIN
      PERFORM pg_catalog.pg_notify('{OWN_SCHEMA}', TG_RELID::pg_catalog.text);
      RETURN NULL;
    END $$""",
    f"""
    COMMENT ON SCHEMA {OWN_SCHEMA} IS
    'Notifies MCP servers of changes (--watch-triggers). DROP SCHEMA {OWN_SCHEMA} CASCADE removes all of it.'""",
)
_TRIGGER = """
    CREATE TRIGGER {own} AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON {table}
    FOR EACH STATEMENT EXECUTE FUNCTION {own}.tell()"""
_MAX_TRIES = 2
"""Number of attempts, because another server may create the same trigger at the same time."""


class Notice(NamedTuple):
    """Notice that a statement has changed rows."""

    backend: int
    """The PostgreSQL process that ran it."""
    table: int
    """The oid of the table."""


class Trigger(NamedTuple):
    """This package's trigger on a table."""

    exists: bool
    is_new: bool


async def make_trigger(link: Link, table: int, deadline: Deadline) -> Trigger:
    """Create a trigger on the table with this oid, if it has none.

    No trigger is created if the role may not do so, or if the table stays locked. Raises SqlError if the connection
    broke.
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
        await ask(_TRIGGER.format(own=OWN_SCHEMA, table=name))
        await ask("COMMIT")


async def listen(ask: Ask) -> None:
    """Subscribe the connection to notices."""
    await ask(f"LISTEN {OWN_SCHEMA}")


async def wait_for_notices(link: Link) -> AsyncIterator[Notice]:
    """Yield notices until the connection ends, which raises SqlError with code `unavailable`."""
    while True:
        await link.wait_for_notifications()
        while link.notifications:
            notification = link.notifications.popleft()
            yield Notice(notification.be_pid, int(notification.extra))
