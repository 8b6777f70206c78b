"""Helpers of the engine tests."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import anyio

from servers.common.sql.errors import SqlError
from servers.common.sql.query.pages import AnswerLimits
from servers.common.sql.query.query import Query, QueryRows
from servers.postgres.engine.deadline import Deadline, Limits
from servers.postgres.engine.link import open_link
from servers.postgres.engine.pool import Pool
from servers.postgres.engine.target import parse_target
from servers.postgres.query.columns import ColumnTypes
from servers.postgres.query.snapshots import Snapshots

__all__ = ["LIMITS", "PAGE", "Reader", "make_pool", "reading", "soon"]

LIMITS = Limits(20, 5, 1_000_000)
PAGE = AnswerLimits(10, 10_000, 1_000)


def soon(seconds: float = 20) -> Deadline:
    """Returns a deadline that is long enough by default."""
    return Deadline(seconds)


def make_pool(url: str, size: int = 2, seconds: float = 20, limits: Limits = LIMITS) -> Pool:
    """Makes a pool of read-only connections."""
    return Pool(partial(open_link, parse_target(url, False), limits), size, seconds)


class Reader:
    """Runs queries, by default for the same client."""

    def __init__(self, pool: Pool, snapshots: Snapshots) -> None:
        self.pool = pool
        self.snapshots = snapshots

    async def read(
        self,
        sql: str,
        *parameters: object,
        cursor: str | None = None,
        who: str | None = "somebody",
        limits: AnswerLimits = PAGE,
    ) -> QueryRows:
        """Returns a page of rows of a query."""
        return await self.snapshots.read(Query(sql, parameters), limits, who, cursor)

    async def code_of(self, sql: str, *parameters: object, cursor: str | None = None, who: str = "somebody") -> str:
        """Returns the code of the error that a query raises."""
        try:
            await self.read(sql, *parameters, cursor=cursor, who=who)
        except SqlError as error:
            return error.code
        return ""


@asynccontextmanager
async def reading(
    url: str, size: int = 2, kept_seconds: float = 20, limits: Limits = LIMITS
) -> AsyncIterator[Reader]:
    """Yields a reader of a database."""
    pool = make_pool(url, size, limits=limits)
    snapshots = Snapshots("data", pool, ColumnTypes(), limits.timeout, kept_seconds)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(snapshots.run)
        yield Reader(pool, snapshots)
        tasks.cancel_scope.cancel()
    await pool.close()
