"""The tool that tells what changed, for clients that can't subscribe."""

from typing import Annotated

from pydantic import Field

from ..app import Ctx, app
from ..arguments import PathArgument
from .journal import Selection
from .texts import changes_text


@app.tool(title="Changes", read_only=True)
async def changes(
    ctx: Ctx,
    cursor: Annotated[str | None, Field(description="from the call before; without it you get one")] = None,
    path: PathArgument | None = None,
    pattern: Annotated[str | None, Field(description="glob as in search_files, e.g. *.py")] = None,
    wait: Annotated[float, Field(ge=0, le=30, description="seconds to wait for a change")] = 0,
) -> str:
    """Tell which files were created, modified or deleted since the call that gave the cursor."""
    files = ctx.state
    roots = files.beneath.roots
    below = [str(root) for root in roots.paths] if path is None else [roots.path(files.place(path))]
    limit = ctx.budget.entries_within(1_000)
    found = await files.journal.read(cursor, Selection(below, pattern), limit, wait)
    return changes_text(found)
