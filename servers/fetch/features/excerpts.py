"""Excerpts of a page: the passages that answer a question, or the changes since an earlier result."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from anyio import to_thread
from pydantic_core import to_json

from shared import CallToolResult, TextContent

from ..errors import FetchError
from ..pages.snapshots import PageRequest, Snapshot
from ..pages.texts import Piece, cut, facts_of, header_of, text_of
from .room import room_for_text
from .state import Ctx, fetch_snapshot, find_stored_snapshot

if TYPE_CHECKING:
    from ..pages.passages import Excerpts

T = TypeVar("T", bound="Excerpts | None")


class Selection(NamedTuple):
    """The requested part of a page."""

    find: str | None
    since: str | None
    start_index: int
    characters: int
    refresh: bool


async def fetch_excerpts(ctx: Ctx, request: PageRequest, selection: Selection) -> CallToolResult:
    """Return the passages of a page that answer `selection.find`, or its changes since the version `selection.since`.

    Raises FetchError with code `bad_argument` for a version that is not stored.
    """
    if selection.start_index or (selection.find is not None and selection.since is not None):
        raise FetchError("bad_argument", "find, since and start_index can't be combined", "Pass only one of them.")
    # Read the stored snapshot first, since the fetch below replaces it, here and at the other replicas.
    before = None if selection.since is None else await find_stored_snapshot(ctx, request)
    snapshot = await fetch_snapshot(ctx, request, refresh=selection.refresh)
    if selection.since is None:
        return await _show_passages(ctx, snapshot, selection)
    if snapshot.version == selection.since:
        note = f"unchanged since version {selection.since}"
        text = header_of(snapshot, (note,), selection.since)
        facts = facts_of(snapshot, Piece("", 0, 0), selection.since) | {"length": len(snapshot.page.text)}
        return CallToolResult(content=[TextContent(text=text)], meta=facts)
    old = ctx.state.snapshots.earlier(ctx.owner, request, selection.since)
    if old is None and before is not None and before.version == selection.since:
        old = before.page.text
    if old is None:
        reason = "that version of the page is no longer stored"
        raise FetchError("bad_argument", reason, "Fetch the page without since.")
    return await _show_changes(ctx, snapshot, old, selection)


async def _show_passages(ctx: Ctx, snapshot: Snapshot, selection: Selection) -> CallToolResult:
    from ..pages.passages import MAX_SEARCHED_LENGTH, find_passages

    text = snapshot.page.text

    def make_notes(shown: int, total: int) -> list[str]:
        counts = f"{shown} of {total} passages with these words, in page order"
        searched = f"only the first {MAX_SEARCHED_LENGTH:,} of {len(text):,} characters were searched"
        return [counts, searched] if len(text) > MAX_SEARCHED_LENGTH else [counts]

    size = room_for_text(ctx, _make_frame(snapshot, make_notes(0, 0)))
    excerpts = await _find_fitting(partial(find_passages, text, selection.find or ""), selection.characters, size)
    return _make_result(snapshot, excerpts, selection.characters, size, make_notes(excerpts.shown, excerpts.total))


async def _show_changes(ctx: Ctx, snapshot: Snapshot, old: str, selection: Selection) -> CallToolResult:
    from ..pages.changes import find_changes

    too_much = f"too much has changed since version {selection.since} for a comparison: this is the page as it is now"
    # Compute the size with the longest of the possible notes.
    size = room_for_text(ctx, _make_frame(snapshot, [too_much]))
    excerpts = await _find_fitting(partial(find_changes, old, snapshot.page.text), selection.characters, size)
    if excerpts is None:
        piece = cut(snapshot.page.text, 0, selection.characters, size)
        text = text_of(snapshot, piece, (too_much,), snapshot.version)
        return CallToolResult(content=[TextContent(text=text)], meta=facts_of(snapshot, piece, snapshot.version))
    note = f"{excerpts.shown} of {excerpts.total} changes since version {selection.since}"
    if not excerpts.total:
        note = f"only white space has changed since version {selection.since}"
    return _make_result(snapshot, excerpts, selection.characters, size, [note])


async def _find_fitting(find: Callable[[int], T], characters: int, size: int) -> T:
    """Return the excerpts that `find` returns for `characters`, or for the largest number of characters whose
    excerpts fit `size` bytes of JSON."""
    while True:
        excerpts = await to_thread.run_sync(find, characters)
        if excerpts is None or (needed_bytes := len(to_json(excerpts.text))) <= size:
            return excerpts
        characters = max(min(characters, len(excerpts.text)) * size // needed_bytes - 1, 1)


def _make_frame(snapshot: Snapshot, notes: Sequence[str]) -> str:
    """Return the text of a result without its excerpts, to measure its size."""
    return text_of(_remove_headings(snapshot), Piece("", 0, len(snapshot.page.text)), tuple(notes), snapshot.version)


def _make_result(
    snapshot: Snapshot, excerpts: "Excerpts", characters: int, size: int, notes: Sequence[str]
) -> CallToolResult:
    """Return the excerpts below the page's header, and the metadata of the whole page."""
    shown = cut(excerpts.text, 0, characters, size)
    piece = shown._replace(total=len(shown.text))
    text = text_of(_remove_headings(snapshot), piece, tuple(notes), snapshot.version)
    facts = facts_of(snapshot, Piece(snapshot.page.text, 0, len(snapshot.page.text)), snapshot.version)
    return CallToolResult(content=[TextContent(text=text)], meta=facts | {"startIndexes": list(excerpts.starts)})


def _remove_headings(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot without the headings of the omitted text: a result with excerpts does not list them."""
    return snapshot._replace(page=snapshot.page._replace(omitted_headings=()))
