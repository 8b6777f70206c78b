"""The server that the tools and resources beside it join, with what all of them need."""

import logging
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager

from shared import Context, Implementation, Server, ToolError, __version__

from .access.beneath import RACE_FREE
from .errors import FilesError
from .files import Files, open_files
from .settings import Settings

__all__ = ["JSON_GROWTH", "Ctx", "app", "read_only"]

log = logging.getLogger("servers.filesystem")

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
    if not RACE_FREE:
        log.warning(
            "this system has no descriptors of directories: paths are checked before and after they are opened, "
            "and who changes directories at the right moment gets out of those that are allowed"
        )
    paths, writable = zip(*settings.directories, strict=True)
    with _without(settings.disable_tool):
        async with open_files(paths, writable, app.changes.resource, settings.denylist) as files:
            yield files


@contextmanager
def _without(names: Sequence[str]) -> Iterator[None]:
    """Takes tools out until the end. Raises ValueError where there is none of a name."""
    tools = app.tools.all()
    unknown = set(names) - {tool.name for tool in tools}
    if unknown:
        raise ValueError(f"--disable-tool: there is no tool {min(unknown)!r}")
    for name in names:
        app.tools.remove(name)
    try:
        yield
    finally:
        # All of them anew, because their order is that of the list a client sees.
        for tool in tools:
            app.tools.remove(tool.name)
            app.tools.add(tool)


@app.error(FilesError)
def _explain(error: FilesError) -> ToolError:
    return ToolError(f"{error.code}: {error}")


def read_only(settings: Settings) -> str | None:
    """Why the tools that change files are not offered, or None where they are."""
    if settings.writes:
        return None
    return "read_only: this server was started without --allow-write, and without --root DIR:rw"
