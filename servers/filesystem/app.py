"""The server that the tools and resources beside it join, with what all of them need."""

from collections.abc import AsyncIterator

from shared import Context, Implementation, Server, ToolError, __version__

from .errors import FilesError
from .files import Files, open_files
from .settings import Settings

__all__ = ["JSON_GROWTH", "Ctx", "app", "read_only"]

Ctx = Context[Files]
JSON_GROWTH = 2
"""Bytes that JSON may need for one byte of ordinary text."""

app = Server[Files](
    Implementation(
        name="filesystem",
        title="Filesystem",
        version=__version__,
        description="Reads, searches and edits files in the directories it was given.",
    ),
    instructions="Works on files in the allowed directories only; list_allowed_directories names them. "
    "Long files are cut: read them in parts with head or tail. Resources are files under file:// URIs; "
    "subscribe to one to be told when it changes.",
    settings=Settings,
)


@app.lifespan
async def _open(settings: Settings) -> AsyncIterator[Files]:
    paths, writable = zip(*settings.directories, strict=True)
    async with open_files(paths, writable, app.changes.resource, settings.denylist) as files:
        yield files


@app.error(FilesError)
def _explain(error: FilesError) -> ToolError:
    return ToolError(f"{error.code}: {error}")


def read_only(settings: Settings) -> str | None:
    """Why the tools that change files are not offered, or None where they are."""
    if settings.writes:
        return None
    return "read_only: this server was started without --allow-write, and without --root DIR:rw"
