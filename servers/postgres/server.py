"""The PostgreSQL server: its features, and the lifespan that opens its databases.

The parts that it shares with the SQLite server are in `servers/common/sql`.
"""

import logging
from collections.abc import AsyncIterator

import anyio

from servers.common.sql.features import describing, exporting, importing, insights, reading, resources, writing
from servers.common.sql.features.context import SqlServerState
from servers.common.sql.server import make_server, serve
from shared import Opening
from shared.program.messages import program_name

from .dialect import POSTGRES
from .features import archived, health
from .opening import open_databases
from .settings import Settings
from .watch.watch import Watch

log = logging.getLogger("servers.postgres")

app = make_server(
    POSTGRES,
    Settings,
    include=[
        resources.declare(POSTGRES),
        describing.declare(POSTGRES),
        health.features,
        insights.features,
        exporting.declare(POSTGRES),
        reading.declare_read_query(POSTGRES),
        writing.declare(POSTGRES),
        importing.declare(POSTGRES),
    ],
)


@app.lifespan
async def _open(opening: Opening) -> AsyncIterator[SqlServerState]:
    settings: Settings = opening.settings
    # If our server runs under the name of the archived npm server, it offers that server's tool and resources as
    # well.
    if settings.query_tool or program_name() == "mcp-server-postgres":
        opening.features.include(archived.features)
    opened_databases = open_databases(
        settings.sources,
        settings.limits,
        settings.readers,
        settings.allowed_ddl,
        allow_privileged=settings.allow_privileged,
        hidden=settings.hide,
    )
    async with opened_databases as databases, anyio.create_task_group() as group:
        triggers: list[str] = []
        for database in databases:
            group.start_soon(database.run)
            needs_triggers = settings.watch_triggers and database.writable
            if needs_triggers and database.is_shared:
                log.warning(
                    "%s: its pooler does not pass on notifications, so --watch-triggers creates no triggers",
                    database.name,
                )
            elif needs_triggers:
                triggers.append(database.name)
        watch = Watch(databases, group, opening.changes.resource, opening.changes.resources, triggers=triggers)
        async with serve(opening, POSTGRES, databases, watch, group) as state:
            yield state
