"""The SQLite server: its features, and the lifespan that opens its databases.

The parts that it shares with the PostgreSQL server are in `servers/common/sql`. Most code in the packages next to
this module runs in the threads of the connections.
"""

import asyncio
from collections.abc import AsyncIterator
from functools import partial

import anyio

from servers.common.sql.database import Databases
from servers.common.sql.features import describing, exporting, importing, insights, reading, resources, writing
from servers.common.sql.features.context import SqlServerState
from servers.common.sql.server import make_server, serve
from shared import Opening
from shared.telemetry.footprint import share_one_arena, watch_memory

from .database import SqliteDatabase
from .dialect import SQLITE
from .engine.database import open_databases
from .features import backup
from .query.snapshots import Snapshots
from .settings import Settings
from .watch.watch import Watch

app = make_server(
    SQLITE,
    Settings,
    include=[
        resources.declare(SQLITE),
        describing.declare(SQLITE),
        reading.declare_explain_query(SQLITE),
        insights.features,
        exporting.declare(SQLITE),
        reading.declare_read_query(SQLITE),
        writing.declare(SQLITE),
        importing.declare(SQLITE),
        backup.features,
    ],
)


@app.lifespan
async def _open(opening: Opening) -> AsyncIterator[SqlServerState]:
    settings: Settings = opening.settings
    snapshots, was_used = Snapshots(), asyncio.Event()
    share_one_arena()
    async with (
        open_databases(
            settings.sources,
            settings.limits,
            settings.readers,
            create=settings.create,
            attach=settings.attach,
            connection_options=settings.connection_options,
        ) as databases,
        anyio.create_task_group() as group,
    ):
        for database in databases:
            database.readers.on_exhausted = partial(snapshots.release_oldest, database)
            for pool in database.pools:
                pool.on_returned = was_used.set
        group.start_soon(snapshots.run)
        group.start_soon(watch_memory, was_used)
        watch = Watch(databases, group, opening.changes.resource, opening.changes.resources)
        sql_databases = Databases(SqliteDatabase(database, snapshots) for database in databases)
        async with serve(opening, SQLITE, sql_databases, watch, group) as state:
            yield state
