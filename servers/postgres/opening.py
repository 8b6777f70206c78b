"""Opens the databases at startup, and checks the permissions of their roles."""

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from functools import partial

from servers.common.sql.database import Databases
from servers.common.sql.errors import SqlError

from .database import PostgresDatabase
from .engine.connecting import OpeningError
from .engine.deadline import Deadline, Limits
from .engine.hidden_columns import check_hidden
from .engine.rights import Rights, check_rights, read_rights
from .engine.target import Target
from .write.allowed import NO_MORE_DDL, AllowedDdl

log = logging.getLogger("servers.postgres")


@asynccontextmanager
async def open_databases(
    targets: list[Target],
    limits: Limits,
    readers: int,
    allowed: AllowedDdl = NO_MORE_DDL,
    *,
    allow_privileged: bool,
    hidden: Sequence[str] = (),
) -> AsyncIterator[Databases[PostgresDatabase]]:
    """Open the databases for the duration of the block.

    Raises ValueError if a database can't be opened, if its role may read a table or column in `hidden`, or, unless
    `allow_privileged`, if its role has permissions that no client should have.
    """
    unknown = set(hidden)
    async with AsyncExitStack() as stack:
        databases: list[PostgresDatabase] = []
        for target in targets:
            database = PostgresDatabase(target, limits, readers, allowed)
            stack.push_async_callback(database.close)
            databases.append(database)
            rights, missing = await _inspect(database, limits, hidden)
            if not allow_privileged:
                check_rights(rights, target.name)
            _log_rights(rights, database)
            unknown &= missing
            for parameter in target.unused:
                log.warning(
                    "%s: %s in its URL is a setting for other programs, and has no effect",
                    target.name,
                    parameter,
                )
        if unknown:
            raise ValueError(f"--hide: no database has {min(unknown)}")
        yield Databases(databases)


async def _inspect(database: PostgresDatabase, limits: Limits, hidden: Sequence[str]) -> tuple[Rights, set[str]]:
    """Connect to the database and detect whether a pooler shares its connections. Return the permissions of the role,
    and those of the `hidden` names that the database does not have. Raises ValueError."""
    deadline = Deadline(limits.timeout)
    try:
        await database.detect_sharing()
        with closing(await database.connect()) as link:
            async with link.transaction(deadline):
                ask = partial(link.ask, deadline=deadline)
                return await read_rights(ask), await check_hidden(ask, hidden, database.name)
    except OpeningError as error:
        raise ValueError(f"{database.name}: {error.details}") from None
    except SqlError as error:
        raise ValueError(f"{database.name}: {error.line}") from None


def _log_rights(rights: Rights, database: PostgresDatabase) -> None:
    """Log what a pooler changes, and permissions of the role that this program does not need."""
    if database.is_shared:
        log.info(
            "%s: its pooler shares connections, so the rest of a truncated result is read by running the query again",
            database.name,
        )
    excess_rights = [*rights.powers, *rights.attributes]
    if rights.is_superuser:
        excess_rights.insert(0, "everything, as a superuser")
    if excess_rights:
        log.warning(
            "%s: the role %r has more rights than it needs: %s", database.name, rights.role, ", ".join(excess_rights)
        )
    if rights.writes and not database.writable:
        log.info("%s: the role %r may change tables; this server only reads", database.name, rights.role)
