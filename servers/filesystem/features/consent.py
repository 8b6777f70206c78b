"""Asks the user before files are changed, if the server runs with `--confirm`.

The user consents to specific versions of files, identified by etag. Each function returns the etag, or the arguments
for the change with the etag, so that the change fails if the file has been modified since. A change that would fail
anyway is refused without asking the user.
"""

import os
import stat
from collections.abc import Sequence

from anyio import from_thread, to_thread

from shared.program.files.entries import Place, etag_of
from shared.text import format_count, quote_name

from ..edit.edit import FileEdits, edit_files
from ..edit.preconditions import require_free, require_new_name, require_same
from ..edit.write import Mode
from ..errors import FilesError
from ..names import escape_breaks
from .arguments import Ctx

Writing = tuple[str, Mode, str | None]
"""The text to write, the mode, and the etag of the version to overwrite."""

_MAX_SHOWN_CHARACTERS = 1_000
"""Maximum number of characters of diffs shown in a question."""


async def confirm_write(ctx: Ctx, place: Place, writing: Writing) -> Writing:
    """Return the text, mode and etag for the write, if the user agrees."""
    text, mode, if_match = writing
    status = await _find_status(ctx, place, follow=True)
    require_same(status, if_match, place.path)
    if mode == "create":
        require_free(status, place.path)
    path, size = _quoted_path(ctx, place), format_count(len(text), "character")
    if status is None:
        await to_thread.run_sync(require_new_name, ctx.state.rooted, place)
        # A file that is created before the user answers is not overwritten.
        await ctx.confirm(f"Create {path} with {size}?", text)
        return text, "create", None
    act = f"Add {size} to {path}" if mode == "append" else f"Overwrite {path} with {size}"
    await ctx.confirm(f"{act}? It has {_size(status)} now.", text, etag_of(status))
    return text, mode, etag_of(status)


async def confirm_edit(ctx: Ctx, requests: Sequence[FileEdits]) -> list[FileEdits]:
    """Return the edits to make, if the user agrees to their diff."""
    protected = ctx.settings.replace_protected
    async with ctx.turn():
        previews = await to_thread.run_sync(
            edit_files, ctx.state.rooted, requests, True, protected, from_thread.check_cancelled
        )
    confirmed = [request._replace(etag=preview.etag) for request, preview in zip(requests, previews, strict=True)]
    diff = escape_breaks("\n".join(preview.diff for preview in previews if preview.diff))
    if diff:
        paths = ", ".join(
            _quoted_path(ctx, request.place)
            for request, preview in zip(requests, previews, strict=True)
            if preview.diff
        )
        shown_diff = (
            diff
            if len(diff) <= _MAX_SHOWN_CHARACTERS
            else f"{diff[:_MAX_SHOWN_CHARACTERS]}\n[truncated: {len(diff):,} characters]"
        )
        await ctx.confirm(f"Change {paths}?\n{shown_diff}", [(request.edits, request.etag) for request in confirmed])
    return confirmed


async def confirm_create_directory(ctx: Ctx, place: Place) -> bool:
    """Return True if the directory does not exist and the user agrees to create it."""
    status = await _find_status(ctx, place, follow=True)
    if status is not None and stat.S_ISDIR(status.st_mode):
        return False
    await ctx.confirm(f"Create the directory {_quoted_path(ctx, place)}?")
    return True


async def confirm_move(ctx: Ctx, source: Place, destination: Place) -> str:
    """Return the etag of the entry to move, if the user agrees."""
    status = await _require_status(ctx, source)
    require_free(await _find_status(ctx, destination), destination.path, source)
    await to_thread.run_sync(require_new_name, ctx.state.rooted, destination, source)
    await ctx.confirm(f"Move {_describe(ctx, source, status)} to {_quoted_path(ctx, destination)}?", etag_of(status))
    return etag_of(status)


async def confirm_copy(ctx: Ctx, source: Place, destination: Place) -> str:
    """Return the etag of the entry to copy, if the user agrees."""
    # The source is only read, so it need not be writable.
    status = await to_thread.run_sync(ctx.state.rooted.stat, source, False)
    require_free(await _find_status(ctx, destination), destination.path, source)
    await to_thread.run_sync(require_new_name, ctx.state.rooted, destination)
    await ctx.confirm(f"Copy {_describe(ctx, source, status)} to {_quoted_path(ctx, destination)}?", etag_of(status))
    return etag_of(status)


async def confirm_delete(ctx: Ctx, place: Place, recursive: bool) -> str:
    """Return the etag of the entry to delete, if the user agrees."""
    status = await _require_status(ctx, place)
    contents_note = " with everything in it" if recursive and stat.S_ISDIR(status.st_mode) else ""
    await ctx.confirm(f"Delete {_describe(ctx, place, status)}{contents_note}?", etag_of(status))
    return etag_of(status)


async def _find_status(ctx: Ctx, place: Place, follow: bool = False) -> os.stat_result | None:
    """Return the status of a place that may be changed; None if it does not exist."""
    try:
        return await _require_status(ctx, place, follow)
    except FilesError as error:
        if error.code == "not_found":
            return None
        raise


async def _require_status(ctx: Ctx, place: Place, follow: bool = False) -> os.stat_result:
    ctx.state.rooted.roots.require_writable(place)
    return await to_thread.run_sync(ctx.state.rooted.stat, place, follow)


def _quoted_path(ctx: Ctx, place: Place) -> str:
    return quote_name(ctx.state.rooted.roots.path(place))


def _describe(ctx: Ctx, place: Place, status: os.stat_result) -> str:
    return f"{_quoted_path(ctx, place)} ({_size(status)})"


def _size(status: os.stat_result) -> str:
    return "a directory" if stat.S_ISDIR(status.st_mode) else format_count(status.st_size, "byte")
