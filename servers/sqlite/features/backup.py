"""The tool that backs up databases."""

from functools import partial

from servers.common.sql.features.context import (
    Ctx,
    DatabaseArgument,
    SqlServerState,
    job_of,
    report_progress,
    turn_to_read,
)
from servers.common.sql.features.writing import require_files
from shared import Features

from ..database import SqliteDatabase
from ..write.backups import format_backup

features = Features[SqlServerState]()


@features.tool(
    unavailable=lambda settings: (
        "no_files: this server was started without --files" if settings.files is None else None
    ),
    destructive=False,
    task="optional",
)
async def backup(ctx: Ctx, database: DatabaseArgument = None) -> str:
    """Copy a database, while it is in use, to a new file in the operator's directory, and check the copy."""
    source = ctx.state.databases.get(database)
    assert isinstance(source, SqliteDatabase)
    directory = require_files(ctx)
    if ctx.settings.confirm:
        await ctx.confirm(f"Back up {source.name} to a new file in the directory for files?")
    job = job_of(ctx)
    async with turn_to_read(ctx, source):
        return format_backup(await report_progress(ctx, job, partial(source.back_up, directory, job)))
