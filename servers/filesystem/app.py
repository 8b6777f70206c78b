"""The server that the tools and resources beside it join, with what all of them need."""

from collections.abc import AsyncIterator

from shared import Context, Implementation, Server, ToolError, __version__

from .errors import FilesError
from .files import Files, open_files
from .settings import Settings

__all__ = ["Ctx", "app", "as_base64", "read_budget", "read_only"]

Ctx = Context[Files]
_BESIDE = 1_000
"""Bytes of a result for what stands beside its text."""

app = Server[Files](
    Implementation(
        name="filesystem",
        title="Filesystem",
        version=__version__,
        description="Reads, searches and edits files in the directories it was given.",
    ),
    instructions="Works on files in the allowed directories only; list_allowed_directories names them. "
    "A long text is cut, and its last line has the cursor to go on with. Resources are files under file:// URIs; "
    "subscribe to one to be told when it changes.",
    settings=Settings,
)


@app.lifespan
async def _open(settings: Settings) -> AsyncIterator[Files]:
    async with open_files(settings.roots, settings.allow_write, app.changes.resource, settings.max_read) as files:
        yield files


@app.error(FilesError)
def _explain(error: FilesError) -> ToolError:
    return ToolError(f"{error.code}: {error}")


def read_budget(ctx: Ctx) -> int:
    """Bytes that the text of a read may take as JSON."""
    return min(ctx.state.max_read, max(ctx.budget.result_bytes - _BESIDE, 1))


def as_base64(budget: int) -> int:
    """Bytes whose base64 is within the budget of a result."""
    return max(budget - _BESIDE, 0) * 3 // 4


def read_only(settings: Settings) -> str | None:
    """Why the tools that change files are not offered, or None where they are."""
    return None if settings.allow_write else "read_only: this server was started without --allow-write"
