"""The tools that change files."""

from typing import Annotated

from anyio import from_thread, to_thread
from pydantic import Field

from ..app import Ctx, app, read_only
from ..arguments import EditOperation, PathArgument
from . import deleting, moving, write


@app.tool(title="Write file", unavailable=read_only, idempotent=True)
async def write_file(ctx: Ctx, path: PathArgument, content: str) -> str:
    """Write a text file, a new one or over an existing one, in one step: never half of it."""
    written = await to_thread.run_sync(write.write_file, ctx.state.beneath, ctx.state.place(path), content.encode())
    return f"{'Created' if written.created else 'Replaced'} {path}: {written.size:,} bytes"


@app.tool(title="Edit file", unavailable=read_only)
async def edit_file(
    ctx: Ctx,
    path: PathArgument,
    edits: Annotated[list[EditOperation], Field(min_length=1)],
    dryRun: Annotated[bool, Field(description="show the changes without making them")] = False,  # noqa: N803
) -> str:
    """Replace passages of a text file, each of which must stand there exactly once. Gives a unified diff."""
    pairs = [(edit.oldText, edit.newText) for edit in edits]
    edited = await to_thread.run_sync(write.edit_file, ctx.state.beneath, ctx.state.place(path), pairs, dryRun)
    return edited.diff or "no change"


@app.tool(title="Create directory", unavailable=read_only, destructive=False, idempotent=True)
async def create_directory(ctx: Ctx, path: PathArgument) -> str:
    """Make a directory and those above it; fine where it exists already."""
    created = await to_thread.run_sync(write.create_directory, ctx.state.beneath, ctx.state.place(path))
    return f"Created {path}" if created else f"{path} exists already"


@app.tool(title="Move file", unavailable=read_only, destructive=False)
async def move_file(ctx: Ctx, source: PathArgument, destination: PathArgument) -> str:
    """Move or rename a file or a directory. The destination must not exist."""
    files = ctx.state
    await to_thread.run_sync(moving.move, files.beneath, files.place(source), files.place(destination))
    return f"Moved {source} to {destination}"


@app.tool(title="Copy file", unavailable=read_only, destructive=False)
async def copy_file(ctx: Ctx, source: PathArgument, destination: PathArgument) -> str:
    """Copy a file, or a directory with all below it. Links are copied as links. The destination must not exist."""
    files = ctx.state
    entries, size = await to_thread.run_sync(
        moving.copy, files.beneath, files.place(source), files.place(destination), from_thread.check_cancelled
    )
    return f"Copied {source} to {destination}: {_entries(entries)}, {size:,} bytes"


@app.tool(title="Delete file", unavailable=read_only)
async def delete_file(
    ctx: Ctx,
    path: PathArgument,
    recursive: Annotated[bool, Field(description="with all that a directory holds")] = False,
) -> str:
    """Delete a file, a link itself, or a directory, for good. A directory that is not empty needs recursive."""
    files = ctx.state
    count = await to_thread.run_sync(
        deleting.delete, files.beneath, files.place(path), recursive, None, from_thread.check_cancelled
    )
    return f"Deleted {path}: {_entries(count)}"


def _entries(count: int) -> str:
    return "1 entry" if count == 1 else f"{count:,} entries"
