"""The tools that undo changes, and list them."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

from anyio import to_thread
from pydantic import Field

from shared import Features
from shared.text import display_name, format_count, quote_name

from ..errors import FilesError, format_error
from ..files import Files
from ..names import escape_breaks
from ..read.pages import fitting_length, json_size
from ..settings import Settings
from ..undo import summaries, undoing
from .arguments import Count, Ctx, read_budget
from .edit import read_only

if TYPE_CHECKING:
    from ..history.changes import Change
    from ..history.recording import History

tools = Features[Files]()

_NOTE_BYTES = 100
"""Number of bytes reserved for the note about changes that are not shown."""
_MAX_PATHS = 3
"""Maximum number of paths listed for one change."""


def reason_not_recorded(settings: Settings) -> str | None:
    """Return the reason that changes can't be undone, or None if they can."""
    return "no_undo: this server was started with --no-undo" if settings.no_undo else read_only(settings)


@tools.tool(unavailable=reason_not_recorded)
async def undo(
    ctx: Ctx,
    change: Annotated[int | None, Field(description="its number (default: the last)")] = None,
    since: Annotated[str | None, Field(description="all changes since this ISO 8601 time")] = None,
) -> str:
    """Undo a change, if its files have not changed since. An undo is also a change."""
    if change is not None and since is not None:
        raise FilesError("bad_undo", "", "pass change or since, not both")
    files, history = ctx.state, _history(ctx)
    time = None if since is None else _parse_time(since)
    changes = await to_thread.run_sync(undoing.find_changes, history, files.rooted, change, time)
    if ctx.settings.confirm:
        await ctx.confirm(
            f"Undo {', '.join(_describe(change_to_undo) for change_to_undo in changes)}?",
            [change_to_undo.number for change_to_undo in changes],
        )
    lines: list[str] = []
    for change_to_undo in changes:
        try:
            async with ctx.turn():
                undone = await to_thread.run_sync(
                    undoing.undo_change, history, files.rooted, change_to_undo, ctx.settings.replace_protected
                )
        except FilesError as error:
            if not lines:
                raise
            lines.append(f"[stopped at change {change_to_undo.number}: {display_name(format_error(error))}]")
            break
        await files.report_all_changes(undone.places)
        lost = f" [not kept: {display_name(', '.join(undone.lost))}]" if undone.lost else ""
        lines.append(
            f"Change {change_to_undo.number} undone by change {undone.number} ({_describe_act(change_to_undo)}){lost}"
        )
    return "\n".join(lines) or "There are no changes since then."


@tools.tool(unavailable=reason_not_recorded, read_only=True)
async def recent_changes(ctx: Ctx, limit: Count = 10) -> str:
    """Show the last changes with their numbers and diffs, latest first."""
    budget = read_budget(ctx) - _NOTE_BYTES
    async with ctx.turn():
        shown, earlier_count = await to_thread.run_sync(
            summaries.summaries, _history(ctx), ctx.state.rooted, limit, budget
        )
    text = "\n".join(f"{_headline(summary.change)}\n{escape_breaks(summary.diff)}".rstrip("\n") for summary in shown)
    if json_size(text) > budget:
        return f"{text[: fitting_length(text, budget)]}\n[truncated: give a smaller limit]"
    if earlier_count:
        return f"{text}\n[{format_count(earlier_count, 'earlier change')}]"
    return text or "No changes."


def _history(ctx: Ctx) -> "History":
    if ctx.state.history is None:
        raise FilesError("no_undo", "", "no changes are recorded here")
    return ctx.state.history


def _parse_time(text: str) -> float:
    """Return the seconds since 1970. A time without a time zone is in UTC."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise FilesError("bad_undo", "", f"{quote_name(text)} is not a time", "Write 2026-01-31T12:00:00Z.") from None
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def _describe(change: "Change") -> str:
    return f"change {change.number} ({_describe_act(change)})"


def _describe_act(change: "Change") -> str:
    paths = [quote_name(path) for path in change.paths[:_MAX_PATHS]]
    more = [f"{len(change.paths) - _MAX_PATHS:,} more"] if len(change.paths) > _MAX_PATHS else []
    return f"{change.act}: {', '.join([*paths, *more])}"


def _headline(change: "Change") -> str:
    time = datetime.fromtimestamp(change.time, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    facts = [
        fact
        for fact in (change.status, f"undone by {change.undone_by}" if change.undone_by else "")
        if fact != "done"
    ]
    undoes_note = f" of {change.undoes}" if change.undoes else ""
    state = f" [{', '.join(filter(None, facts))}]" if any(facts) else ""
    return f"{_describe(change).removesuffix(')')}{undoes_note}) {time}{state}"
