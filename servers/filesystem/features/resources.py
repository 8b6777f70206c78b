"""Files and directories as resources under their `file:` URIs, and notifications when they change."""

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Annotated, Any

from anyio import to_thread
from pydantic import Field

from shared import (
    BlobResourceContents,
    Features,
    InvalidParams,
    Resource,
    ResourceNotFound,
    Run,
    TextResourceContents,
)
from shared.program.files.entries import Place
from shared.server.dispatch.changes import Changes

from ..errors import FilesError
from ..files import Files
from ..read.binary import BytesRead, bytes_of
from ..read.charsets import UTF8, charset_by_mark, decode, decode_plain
from ..read.pages import fitting_length, json_size
from ..search import listing
from ..search.page import Page
from ..watch.subscriptions import split_glob
from .arguments import Ctx, base64_capacity, read_budget
from .entries import format_time, resource_of, root_resource_of
from .reports import report_missing_roots

features = Features[Files]()

_TEMPLATE = "file:///{+path}{?offset,length}"
_OVERHEAD_BYTES = 100
"""Size in bytes of a listing without its entries."""
_MAX_CHARACTER_BYTES = 4
"""Maximum number of bytes in a character in UTF-8."""

ByteCount = Annotated[int | None, Field(ge=0)]
Contents = TextResourceContents | BlobResourceContents


@contextmanager
def _translate_errors(uri: str) -> Iterator[None]:
    """Translate file errors into the protocol's errors for resources."""
    try:
        yield
    except FilesError as error:
        if error.code in ("not_found", "outside_roots", "denied", "bad_path", "bad_pattern", "not_a_directory"):
            raise ResourceNotFound(uri) from None
        raise InvalidParams(f"{error.code}: {error.reason}") from None


def _read_at_once(ctx: Ctx, path: str, offset: int | None, length: int | None) -> Contents | None:
    """Return a whole small text in UTF-8; None for everything else."""
    uri, files = f"file:///{path}", ctx.state
    place = files.place(uri)
    small_file = files.small.read(place) if offset is None and length is None else None
    text = None if small_file is None else decode_plain(small_file.data)
    if small_file is None or text is None or json_size(text) > read_budget(ctx):
        return None
    read = bytes_of(small_file, place, len(small_file.data))
    return TextResourceContents(uri=uri, mime_type=read.mime, text=text, meta=_facts(read))


@features.resource(
    _TEMPLATE, name="file", title="A file or a directory in an allowed directory", at_once=_read_at_once
)
async def read_resource(ctx: Ctx, path: str, offset: ByteCount = None, length: ByteCount = None) -> Contents:
    """A file, as text if it is text, else as bytes; with offset or length in bytes, a part of it. For a
    directory, a list of the resources in it, as JSON."""
    uri, files = f"file:///{path}", ctx.state
    with _translate_errors(uri):
        place = files.place(uri)
        try:
            contents = await _read_whole(ctx, uri, place) if offset is None and length is None else None
            return contents or await _read_part(ctx, uri, place, offset, length)
        except FilesError as error:
            if error.code != "not_a_file":
                raise
        async with ctx.turn(brief=True):
            return await to_thread.run_sync(_read_directory, files, uri, place, read_budget(ctx), ctx.budget.entries)


async def _read_whole(ctx: Ctx, uri: str, place: Place) -> Contents | None:
    """Return the contents of the whole file; None if it is too large."""
    budget, blob_budget = read_budget(ctx), base64_capacity(ctx.budget.result_bytes)
    try:
        read = await ctx.state.read_bytes(place, max(budget, blob_budget), ctx.turn)
    except FilesError as error:
        if error.code == "too_large":
            return None
        raise
    text, charset = decode_plain(read.data), UTF8
    if text is None and (read.mime.startswith("text/") or charset_by_mark(read.data)):
        async with ctx.turn(brief=True):
            with suppress(FilesError):
                text, charset = await to_thread.run_sync(decode, read.data, uri)
    if text is None:
        is_small = read.size <= blob_budget
        return BlobResourceContents.of(uri, read.data, read.mime, _facts(read)) if is_small else None
    if json_size(text) > budget:
        return None
    meta = _facts(read) if charset.name == UTF8.name else {**_facts(read), "charset": charset.name}
    return TextResourceContents(uri=uri, mime_type=read.mime, text=text, meta=meta)


def _facts(read: BytesRead) -> dict[str, Any]:
    """Return the file's metadata for programs."""
    modified = format_time(read.modified)
    return {"etag": read.etag} if modified is None else {"etag": read.etag, "lastModified": modified}


async def _read_part(ctx: Ctx, uri: str, place: Place, offset: int | None, length: int | None) -> Contents:
    """Return a part of the file, with the URI of the next part. Without a `length`, the part ends at a line ending,
    if it contains one."""
    budget, start = read_budget(ctx), offset or 0
    read = await ctx.state.read_bytes(place, base64_capacity(budget), ctx.turn, start, length)
    # A part is text only if its UTF-8 form equals the bytes of the file, so that clients can join the parts.
    text = decode_plain(read.data)
    if length is None and start + len(read.data) < read.size:
        text = _whole_lines(read.data, budget)
    elif text is not None and json_size(text) > budget:
        text = None if length is not None else _whole_lines(read.data, budget)
    length_read = len(read.data) if text is None else len(text.encode())
    meta = {**_facts(read), "size": read.size}
    if start + length_read < read.size and (length_read or length is None):
        meta["next"] = f"{uri}?offset={start + length_read}" + (f"&length={length}" if length is not None else "")
    if offset is not None or length is not None:
        uri = f"{uri}?offset={start}&length={length_read}"
    if text is None:
        return BlobResourceContents.of(uri, read.data, read.mime, meta)
    return TextResourceContents(uri=uri, mime_type=read.mime, text=text, meta=meta)


def _whole_lines(data: bytes, budget: int) -> str | None:
    """Return the text at the start of the data that fits the budget, without an incomplete character or line at its
    end; None if the data is not text. If whole lines would use less than half of the budget, the last line is cut.
    """
    texts = (decode_plain(data[: len(data) - cut]) for cut in range(_MAX_CHARACTER_BYTES))
    text = next((text for text in texts if text is not None), None)
    if text is None:
        return None
    text = text[: fitting_length(text, budget)]
    end = text.rfind("\n") + 1
    return text[:end] if end > len(text) // 2 else text


def _read_directory(files: Files, uri: str, place: Place, budget: int, limit: int) -> TextResourceContents:
    """Return the resources in a directory, as many as the budget allows."""
    listed = listing.list_directory(files.rooted, place, Page(limit, sys.maxsize))
    shown: list[dict[str, Any]] = []
    for entry in _readable_entries(files, listed.entries):
        resource = resource_of(entry).to_wire()
        budget -= json_size(json.dumps(resource)) + len(", ")
        if budget < _OVERHEAD_BYTES:
            break
        shown.append(resource)
    is_truncated = listed.truncated or budget < _OVERHEAD_BYTES
    text = json.dumps({"resources": shown, "total": listed.total, "truncated": is_truncated})
    return TextResourceContents(uri=uri, mime_type="application/json", text=text)


@features.lists_resources
async def list_resources(ctx: Ctx) -> list[Resource]:
    """The allowed directories, then the directories and files directly in them."""
    if ctx.state is not ctx.running.state:
        await ctx.state.listings.watch(ctx.state.rooted, partial(_report_list, ctx.changes))
    async with ctx.turn(brief=True):
        listed = await to_thread.run_sync(_list_roots, ctx.state, ctx.budget.entries)
    await report_missing_roots(ctx)
    return listed


def _list_roots(files: Files, limit: int) -> list[Resource]:
    """Return the allowed directories, then the entries directly in them, as resources."""
    roots: list[Resource] = []
    entries: list[listing.ListedEntry] = []
    for index, path in enumerate(files.rooted.roots.paths):
        root = Place(index, (), str(path))
        try:
            modified = files.rooted.stat(root).st_mtime
            entries += listing.list_directory(files.rooted, root, Page(limit, sys.maxsize)).entries
        except FilesError:
            continue
        roots.append(root_resource_of(files.uri(root), path, modified))
    return [*roots, *map(resource_of, _readable_entries(files, entries))]


def _readable_entries(files: Files, entries: "Iterable[listing.ListedEntry]") -> "Iterator[listing.ListedEntry]":
    """Yield the directory entries that can be read as resources."""
    for entry in entries:
        if entry.kind in ("file", "directory") and not files.rooted.roots.denies(files.place(entry.uri)):
            yield entry


@features.completes("resource", _TEMPLATE, "path")
async def complete_path(ctx: Ctx, typed: str, _other_arguments: dict[str, str]) -> list[str]:
    """The paths that begin with the typed text. A directory ends in a slash."""
    async with ctx.turn(brief=True):
        return await to_thread.run_sync(listing.complete, ctx.state.rooted, typed)


async def subscribe(ctx: Ctx, uri: str) -> str:
    """Watch the file, directory or glob of a URI, and return the key for notifications of its changes."""
    files = ctx.state
    if not uri.startswith("file:"):
        raise ResourceNotFound(uri)
    with _translate_errors(uri):
        glob = split_glob(uri)
        if glob is None:
            place = files.place(uri)
            files.rooted.roots.require_allowed(place)
            key = files.key(files.uri(place))
            await files.watcher.watch(key, place, files.rooted)
        else:
            place = files.place(glob[0])
            files.rooted.roots.require_allowed(place)
            key = files.key(f"{files.uri(place)}/{glob[1]}")
            await files.globs.watch(key, place, glob[1], files.rooted, ctx.owner)
    return key


async def unsubscribe(run: Run[Files], key: str) -> None:
    """Stop the notifications of the key."""
    files: Files = run.state
    files.watcher.unwatch(key)
    files.globs.unwatch(key)


async def watch_list(run: Run[Files]) -> None:
    """Report changes of the list of resources from now on."""
    files: Files = run.state
    await files.watcher.watch_listing("listing", partial(_report_list, run.changes), files.rooted)


async def _report_list(changes: Changes) -> None:
    changes.resources()
