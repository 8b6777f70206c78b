"""What the user is asked before files are changed, with `--confirm`.

Consent is to versions of files, by their etags: each function gives what the change is to be made with, so that it
fails where somebody else was faster. What can be seen to fail is refused before anybody is asked.
"""

import os
import stat
from collections.abc import Sequence

from anyio import from_thread, to_thread

from shared.program.files.entries import Place, etag_of
from shared.text import quoted

from ..edit.edit import FileEdits, edit_files
from ..edit.preconditions import require_free, require_same
from ..edit.write import Mode
from ..errors import FilesError
from ..names import unbroken
from .arguments import Ctx

Writing = tuple[str, Mode, str | None]
"""The text to be written, how, and over which version."""

_SHOWN = 1_000
"""Characters of diffs that a question shows."""


async def to_write(ctx: Ctx, place: Place, wanted: Writing) -> Writing:
    """How to write the file, if the user agrees."""
    text, mode, if_match = wanted
    found = await _find(ctx, place, follow=True)
    require_same(found, if_match, place.written)
    if mode == "create":
        require_free(found, place.written)
    path, size = _path(ctx, place), f"{len(text):,} characters"
    if found is None:
        # What is made by others while the user thinks is not overwritten.
        await ctx.confirm(f"Create {path} with {size}?", text)
        return text, "create", None
    act = f"Add {size} to {path}" if mode == "append" else f"Overwrite {path} with {size}"
    await ctx.confirm(f"{act}? It has {_size(found)} now.", text, etag_of(found))
    return text, mode, etag_of(found)


async def to_edit(ctx: Ctx, wanted: Sequence[FileEdits]) -> list[FileEdits]:
    """The edits to make, if the user agrees, to whom they are shown as a diff."""
    protected = ctx.settings.replace_protected
    async with ctx.turn():
        seen = await to_thread.run_sync(
            edit_files, ctx.state.beneath, wanted, True, protected, from_thread.check_cancelled
        )
    agreed = [one._replace(etag=now.etag) for one, now in zip(wanted, seen, strict=True)]
    diff = unbroken("\n".join(one.diff for one in seen if one.diff))
    if diff:
        paths = ", ".join(_path(ctx, one.place) for one, now in zip(wanted, seen, strict=True) if now.diff)
        shown = diff if len(diff) <= _SHOWN else f"{diff[:_SHOWN]}\n[cut: {len(diff):,} characters]"
        await ctx.confirm(f"Change {paths}?\n{shown}", [(one.edits, one.etag) for one in agreed])
    return agreed


async def to_create_directory(ctx: Ctx, place: Place) -> bool:
    """Whether there is anything to make, to which the user then agrees."""
    found = await _find(ctx, place, follow=True)
    if found is not None and stat.S_ISDIR(found.st_mode):
        return False
    await ctx.confirm(f"Make the directory {_path(ctx, place)}?")
    return True


async def to_move(ctx: Ctx, source: Place, destination: Place) -> str:
    """The etag of what may be moved, if the user agrees."""
    found = await _require_found(ctx, source)
    require_free(await _find(ctx, destination), destination.written)
    await ctx.confirm(f"Move {_described(ctx, source, found)} to {_path(ctx, destination)}?", etag_of(found))
    return etag_of(found)


async def to_copy(ctx: Ctx, source: Place, destination: Place) -> str:
    """The etag of what may be copied, if the user agrees."""
    found = await to_thread.run_sync(ctx.state.beneath.stat, source, False)
    require_free(await _find(ctx, destination), destination.written)
    await ctx.confirm(f"Copy {_described(ctx, source, found)} to {_path(ctx, destination)}?", etag_of(found))
    return etag_of(found)


async def to_delete(ctx: Ctx, place: Place, recursive: bool) -> str:
    """The etag of what may be deleted, if the user agrees."""
    found = await _require_found(ctx, place)
    with_all = " with all it holds" if recursive and stat.S_ISDIR(found.st_mode) else ""
    await ctx.confirm(f"Delete {_described(ctx, place, found)}{with_all}?", etag_of(found))
    return etag_of(found)


async def _find(ctx: Ctx, place: Place, follow: bool = False) -> os.stat_result | None:
    """What is at a place that may be changed."""
    try:
        return await _require_found(ctx, place, follow)
    except FilesError as error:
        if error.code == "not_found":
            return None
        raise


async def _require_found(ctx: Ctx, place: Place, follow: bool = False) -> os.stat_result:
    ctx.state.beneath.roots.require_writable(place)
    return await to_thread.run_sync(ctx.state.beneath.stat, place, follow)


def _path(ctx: Ctx, place: Place) -> str:
    return quoted(ctx.state.beneath.roots.path(place))


def _described(ctx: Ctx, place: Place, found: os.stat_result) -> str:
    return f"{_path(ctx, place)} ({_size(found)})"


def _size(found: os.stat_result) -> str:
    return "a directory" if stat.S_ISDIR(found.st_mode) else f"{found.st_size:,} bytes"
