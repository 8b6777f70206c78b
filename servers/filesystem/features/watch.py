"""The tool that lists changes, for clients that can't subscribe, and the text of its results."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import Field

from servers.common.arguments import OptionalText
from shared import Features

from ..files import Files
from ..search.page import Page
from ..watch.journal import Changes, Selection
from .arguments import Ctx

tools = Features[Files]()

_NOTES_BYTES = 1_000
"""Size in bytes of a result without its changes."""


@tools.tool(read_only=True)
async def changes(
    ctx: Ctx,
    cursor: Annotated[OptionalText, Field(description="from the last call; omit it to get one")] = None,
    path: OptionalText = None,
    pattern: Annotated[OptionalText, Field(description="glob, e.g. *.py")] = None,
    wait: Annotated[float, Field(ge=0, le=30, description="seconds to wait for a change")] = 0,
) -> str:
    """List files created, modified or deleted since the call that returned the cursor."""
    files = ctx.state
    roots = files.rooted.roots
    directories = [str(root) for root in roots.paths] if path is None else [roots.path(files.place(path))]
    page = Page(ctx.budget.limit_entries(1_000), ctx.budget.page_bytes - _NOTES_BYTES, cursor)
    result = await files.journal.read(page, Selection(directories, pattern), wait)
    return changes_text(result)


def changes_text(result: Changes) -> str:
    """Return one line for each change, then the notes."""
    lines: list[str] = []
    for change in result.changes:
        detected_at = datetime.fromtimestamp(change.time, UTC).isoformat(timespec="milliseconds")
        lines.append(f"{detected_at} {change.kind} {change.path}")
    if result.overflow:
        lines.append("[overflow: the cursor is too old, so changes are missing; check the files, then continue]")
    if result.more:
        lines.append("[there are more: call again at once]")
    if result.partial:
        lines.append("[partial: there are too many files, so changes to some are missed]")
    return "\n".join([*lines, f"[cursor: {result.cursor}]"])
