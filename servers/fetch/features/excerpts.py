"""What matters of a page: the passages that answer a question, or what has changed since an earlier answer."""

from typing import TYPE_CHECKING, NamedTuple

from anyio import to_thread

from shared import CallToolResult, TextContent

from ..errors import FetchError
from ..pages.snapshots import Snapshot, Wanted
from ..pages.texts import Piece, cut, facts_of, header_of, text_of
from .state import Ctx, kept_snapshot, snapshot_of

if TYPE_CHECKING:
    from ..pages.passages import Excerpts


class Asked(NamedTuple):
    """What is wanted of a page, and how much of it."""

    find: str | None
    since: str | None
    start_index: int
    characters: int
    size: int
    """Bytes of JSON that the text may take."""
    refresh: bool


async def excerpts(ctx: Ctx, wanted: Wanted, asked: Asked) -> CallToolResult:
    """Return the passages of a page that answer `asked.find`, or what has changed since the version `asked.since`.

    Raises FetchError, `bad_argument` for a version that is not kept.
    """
    if asked.start_index or (asked.find is not None and asked.since is not None):
        raise FetchError("bad_argument", "find, since and start_index can't be combined", "Give one of them.")
    # The next fetch replaces it, here and for the other replicas.
    before = None if asked.since is None else await kept_snapshot(ctx, wanted)
    snapshot = await snapshot_of(ctx, wanted, refresh=asked.refresh)
    if asked.since is None:
        return await _passages(snapshot, asked)
    if snapshot.version == asked.since:
        note = f"unchanged since version {asked.since}"
        text = header_of(snapshot, (note,), asked.since)
        facts = facts_of(snapshot, Piece("", 0, 0), asked.since) | {"length": len(snapshot.page.text)}
        return CallToolResult(content=[TextContent(text=text)], meta=facts)
    old = ctx.state.snapshots.earlier(ctx.owner, wanted, asked.since)
    if old is None and before is not None and before.version == asked.since:
        old = before.page.text
    if old is None:
        reason = "no answer of that version of the page is kept"
        raise FetchError("bad_argument", reason, "Fetch the page without since.")
    return await _changes(snapshot, old, asked)


async def _passages(snapshot: Snapshot, asked: Asked) -> CallToolResult:
    from ..pages.passages import LOOKED_AT, find_passages

    text = snapshot.page.text
    parts = await to_thread.run_sync(find_passages, text, asked.find or "", asked.characters)
    notes = [f"{parts.shown} of {parts.total} passages with these words, in the order of the page"]
    if len(text) > LOOKED_AT:
        notes.append(f"only the first {LOOKED_AT:,} of {len(text):,} characters were searched")
    return _answer(snapshot, parts, asked, *notes)


async def _changes(snapshot: Snapshot, old: str, asked: Asked) -> CallToolResult:
    from ..pages.changes import find_changes

    parts = await to_thread.run_sync(find_changes, old, snapshot.page.text, asked.characters)
    if parts is None:
        note = f"too much has changed since version {asked.since} to be compared: this is the page as it is now"
        piece = cut(snapshot.page.text, 0, asked.characters, asked.size)
        text = text_of(snapshot, piece, (note,), snapshot.version)
        return CallToolResult(content=[TextContent(text=text)], meta=facts_of(snapshot, piece, snapshot.version))
    if not parts.total:
        note = f"only white space has changed since version {asked.since}"
        return _answer(snapshot, parts, asked, note)
    return _answer(snapshot, parts, asked, f"{parts.shown} of {parts.total} changes since version {asked.since}")


def _answer(snapshot: Snapshot, parts: "Excerpts", asked: Asked, *notes: str) -> CallToolResult:
    """The parts below what the server says of the page, and the facts of the page as a whole."""
    shown = cut(parts.text, 0, asked.characters, asked.size)
    text = text_of(snapshot, shown._replace(total=len(shown.text)), notes, snapshot.version)
    facts = facts_of(snapshot, Piece(snapshot.page.text, 0, len(snapshot.page.text)), snapshot.version)
    return CallToolResult(content=[TextContent(text=text)], meta=facts | {"startIndexes": list(parts.starts)})
