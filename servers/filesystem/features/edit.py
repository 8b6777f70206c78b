"""The tools that change files.

The modules in `edit` and `history` are imported by the first call that uses one of their names (see
`servers/start.py`), so annotations that use their types are quoted.
"""

import json
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from anyio import from_thread, to_thread
from pydantic import Field, WithJsonSchema

from servers.common.arguments import OptionalText
from shared import Features
from shared.text import display_name, format_count, quote_name

from ..edit import delete, edit, move, replacements, write
from ..edit import patch as patches
from ..errors import FilesError
from ..files import Files
from ..history import recording
from ..names import escape_breaks
from ..read.charsets import UTF8
from ..read.pages import fitting_length, json_size
from ..settings import Settings
from . import consent
from .arguments import Ctx, EditOperation, Encoding, IfMatch, read_budget
from .views import EDIT_APP, show_edit

tools = Features[Files]()

_MANY_EDITS, _LARGE_PATCH = 1_000, 65_536
"""More edits, and patches of more characters, are parsed in a thread, since that takes more than a millisecond."""
_NOTE_BYTES = 110
"""Size in bytes of the note about a truncated diff."""
_JSON_LINES = (".jsonl", ".ndjson", ".ldjson", ".geojsonl")

_Content = Annotated[str | dict[str, Any] | list[Any], WithJsonSchema({"type": "string"})]
"""Text. Some clients parse a text that is JSON, so an object or an array must be accepted for a model to write it
(srbhptl39/MCP-SuperAssistant#7, Kilo-Org/kilocode#4131). The schema omits both, since a model should write text."""


def read_only(settings: Settings) -> str | None:
    """Return the reason that the tools that change files are not offered, or None if they are."""
    if settings.writes:
        return None
    return "read_only: this server was started without --allow-write, and without --root DIR:rw"


def _to_text(content: _Content, path: str, mode: str) -> str:
    """Return an object or an array as JSON, on one line in a file of JSON Lines and at the end of any file."""
    if isinstance(content, str):
        return content
    is_line = mode == "append" or path.lower().endswith(_JSON_LINES)
    return json.dumps(content, ensure_ascii=False, indent=None if is_line else 2) + "\n"


@tools.tool(unavailable=read_only)
async def write_file(
    ctx: Ctx,
    path: str,
    content: _Content,
    mode: Literal["overwrite", "create", "append"] = "overwrite",
    if_match: IfMatch = None,
    encoding: Encoding = None,
) -> str:
    """Write a text file: overwrite it, create it only if it is new, or append. Keeps charset and CRLF."""
    place = ctx.state.place(path)
    writing: consent.Writing = _to_text(content, path, mode), mode, if_match
    if ctx.settings.confirm:
        writing = await consent.confirm_write(ctx, place, writing)
    protected, recorder = ctx.settings.replace_protected, ctx.state.recorder()
    async with ctx.turn(brief=True):
        text, mode, etag = writing
        options = write.WriteOptions(etag, protected, encoding, on_new_line=not isinstance(content, str))
        arguments = place, text, mode, options, recorder
        result = await to_thread.run_sync(write.write_file, ctx.state.rooted, *arguments)
    ctx.state.report_changes(place)
    verb = "Created" if result.created else {"append": "Appended to"}.get(mode, "Replaced")
    note = " [the text continues the last line, which had no line ending]" if result.continues_line else ""
    return f"{verb} {quote_name(path)}: {_facts(result)}{note}{_undo_note(recorder)}"


@tools.tool(unavailable=read_only, app=EDIT_APP)
async def edit_file(
    ctx: Ctx,
    path: OptionalText = None,
    edits: Annotated[list[EditOperation], Field(min_length=1, description="applied in order")] | None = None,
    dryRun: Annotated[bool, Field(description="only show the diff")] = False,  # noqa: N803
    if_match: Annotated[OptionalText, Field(description="etag of path")] = None,
    encoding: OptionalText = None,
    patch: Annotated[OptionalText, Field(description="unified diff, instead of edits")] = None,
) -> str:
    """Replace passages in text files: all edits are made, or none. Returns a diff."""
    if (edits is None) == (patch is None) or (edits is None and (path is not None or if_match is not None)):
        raise FilesError("bad_edit", path or "", "pass either path and edits, or patch alone")

    def read_edits() -> list[edit.FileEdits]:
        if edits is not None:
            return _edits_by_file(ctx, path, edits, if_match, encoding)
        return [
            edit.FileEdits(ctx.state.place(file.path), file.edits, encoding=encoding)
            for file in patches.read_patch(patch or "")
        ]

    is_large = len(edits or ()) > _MANY_EDITS or len(patch or "") > _LARGE_PATCH
    file_edits = await to_thread.run_sync(read_edits) if is_large else read_edits()
    if ctx.settings.confirm and not dryRun:
        file_edits = await consent.confirm_edit(ctx, file_edits)
    recorder = ctx.state.recorder()
    options = dryRun, ctx.settings.replace_protected, from_thread.check_cancelled, recorder
    async with ctx.turn():
        edited = await to_thread.run_sync(edit.edit_files, ctx.state.rooted, file_edits, *options)
    ctx.state.report_changes(*(file.place for file in file_edits))
    paths = [file.place.path for file in file_edits]
    show_edit(ctx, paths, edited, applied=not dryRun)
    parts = [
        f"{quote_name(name)}: {_facts(result)}\n"
        + "".join(f"[{note}]\n" for note in result.tolerated)
        + (escape_breaks(result.diff) or "no change")
        for name, result in zip(paths, edited, strict=True)
    ]
    text, budget = "\n".join(parts), read_budget(ctx) - _NOTE_BYTES
    note = _undo_note(recorder)
    if json_size(text) <= budget:
        return text + note
    shown = text[: fitting_length(text, budget)]
    return f"{shown}\n[truncated: {len(shown):,} of {len(text):,} characters of the diff shown]{note}"


@tools.tool(unavailable=read_only, destructive=False, idempotent=True)
async def create_directory(ctx: Ctx, path: str) -> str:
    """Create a directory and its parents; no error if it exists."""
    place = ctx.state.place(path)
    if ctx.settings.confirm and not await consent.confirm_create_directory(ctx, place):
        return _existing_note(path)
    recorder = ctx.state.recorder()
    created = await to_thread.run_sync(write.create_directory, ctx.state.rooted, place, recorder)
    ctx.state.report_changes(place)
    return f"Created {quote_name(path)}{_undo_note(recorder)}" if created else _existing_note(path)


@tools.tool(unavailable=read_only, destructive=False)
async def move_file(ctx: Ctx, source: str, destination: str) -> str:
    """Move or rename a file or directory. The destination must not exist."""
    files = ctx.state
    places = files.place(source), files.place(destination)
    etag = await consent.confirm_move(ctx, *places) if ctx.settings.confirm else None
    recorder = files.recorder()
    async with ctx.turn():
        arguments = (*places, from_thread.check_cancelled, etag, recorder)
        await to_thread.run_sync(move.move, files.rooted, *arguments)
    files.report_changes(*places)
    return f"Moved {quote_name(source)} to {quote_name(destination)}{_undo_note(recorder)}"


@tools.tool(unavailable=read_only, destructive=False)
async def copy_file(ctx: Ctx, source: str, destination: str) -> str:
    """Copy a file, or a directory with its contents; links stay links. The destination must not exist."""
    files = ctx.state
    places = files.place(source), files.place(destination)
    etag = await consent.confirm_copy(ctx, *places) if ctx.settings.confirm else None
    recorder = files.recorder()
    arguments = (*places, from_thread.check_cancelled, etag, recorder)
    async with ctx.turn():
        copied = await to_thread.run_sync(move.copy, files.rooted, *arguments)
    files.report_changes(places[1])
    counts = f"{format_count(copied.entries, 'entry', 'entries')}, {format_count(copied.size, 'byte')}"
    notes = f"{_lost_note(copied.lost)}{_undo_note(recorder)}"
    return f"Copied {quote_name(source)} to {quote_name(destination)}: {counts}{notes}"


@tools.tool(unavailable=read_only)
async def delete_file(ctx: Ctx, path: str, recursive: bool = False) -> str:
    """Delete a file, link or directory; a directory with contents needs recursive."""
    place = ctx.state.place(path)
    etag = await consent.confirm_delete(ctx, place, recursive) if ctx.settings.confirm else None
    recorder = ctx.state.recorder()
    options = recursive, etag, from_thread.check_cancelled, recorder
    async with ctx.turn():
        count = await to_thread.run_sync(delete.delete, ctx.state.rooted, place, *options)
    ctx.state.report_changes(place)
    return f"Deleted {quote_name(path)}: {format_count(count, 'entry', 'entries')}{_undo_note(recorder)}"


def _edits_by_file(
    ctx: Ctx, path: str | None, edits: Sequence[EditOperation], if_match: str | None, encoding: str | None
) -> "list[edit.FileEdits]":
    """Return the edits by file; `if_match` applies to the file at `path`. Raises FilesError."""
    files: dict[str, list[replacements.Edit]] = {}
    for number, operation in enumerate(edits, 1):
        name = operation.path or path
        if name is None:
            raise FilesError("bad_edit", "", f"edit {number} does not specify a file", "Specify path.")
        files.setdefault(name, []).append(replacements.Edit(operation.oldText, operation.newText, operation.count))
    if len(files) > patches.MAX_FILES:
        raise FilesError(
            "bad_edit", "", f"the edits change more than {patches.MAX_FILES} files", "Make several calls."
        )
    if if_match is not None and path not in files:
        reason = "if_match applies to the file at path, which no edit changes"
        raise FilesError("bad_edit", path or "", reason, "Pass the file that has this etag as path.")
    return [
        edit.FileEdits(ctx.state.place(name), of_file, if_match if name == path else None, encoding)
        for name, of_file in files.items()
    ]


def _facts(file: "write.WriteResult | edit.EditResult") -> str:
    """Return the size and etag of a written file, its charset unless it is UTF-8, and any lost attributes."""
    charset = "" if file.charset == UTF8.name else f", charset {file.charset}"
    return f"{format_count(file.size, 'byte')}, etag {file.etag}{charset}{_lost_note(file.lost)}"


def _lost_note(lost: Sequence[str]) -> str:
    """Return a note on attributes that could not be kept, or ""."""
    return f" [not kept: {display_name(', '.join(lost))}]" if lost else ""


def _undo_note(recorder: "recording.Recorder") -> str:
    """Return a note on why the change can't be undone, or "" if it can be."""
    return f" [no undo: {display_name(recorder.note)}]" if recorder.note else ""


def _existing_note(path: str) -> str:
    return f"{quote_name(path)} already exists"
