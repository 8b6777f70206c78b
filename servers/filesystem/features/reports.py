"""Messages to the user in addition to results, sent as log messages to clients that have enabled their level."""

from typing import Any

from anyio import to_thread

from shared import Context, ResourceNotFound, Run
from shared.protocol.methods import Method
from shared.server.extension import Extension
from shared.server.features import Handler
from shared.text import display_name, quote_name

from ..errors import FilesError
from ..files import Files
from ..read.pages import TextRead
from .advice import add_advice
from .arguments import Ctx

_LOGGER = "filesystem"
_REPORTED_METHODS = {"tools/call", "resources/read"}
_CREATING_TOOLS = {"write_file", "move_file", "copy_file"}
_LIMITS = {"time": "ran out of time", "budget": "reached the limit on files per call"}
"""The limits that end a search early, each with the words that report it."""


async def report_truncation(ctx: Ctx, path: str, read: TextRead) -> None:
    """Log that a text was too long for one answer."""
    shown = f"{len(read.text.encode()):,} of {read.size:,} bytes"
    await ctx.log("info", f"{quote_name(path)} was truncated: {shown} shown", _LOGGER)


async def report_early_end(ctx: Ctx, reason: str | None) -> None:
    """Log that a search ended before it had looked at everything."""
    if reason in _LIMITS:
        await ctx.log("notice", f"a search ended early, and may have missed files: it {_LIMITS[reason]}", _LOGGER)


async def report_missing_roots(ctx: Context[Files]) -> None:
    """Log the allowed directories that can no longer be reached, if there are any."""
    if ctx.wants_log("warning"):
        for path in await to_thread.run_sync(ctx.state.missing_roots, abandon_on_cancel=True):
            await ctx.log("warning", f"the allowed directory {display_name(path)} can't be reached", _LOGGER)


def _wrap_handler(method: Method, handler: Handler) -> Handler:
    """Return a handler that, if a call fails, also reports missing allowed directories and adds advice to the error.
    Handlers of methods that don't access files are returned unchanged."""
    if method.name not in _REPORTED_METHODS:
        return handler

    async def handle(run: Run[Any], context: Context[Any], params: Any) -> dict[str, Any]:
        try:
            return await handler(run, context, params)
        except ResourceNotFound:
            await report_missing_roots(context)
            raise
        except FilesError as error:
            await report_missing_roots(context)
            creates_entry = getattr(params, "name", "") in _CREATING_TOOLS
            raise await to_thread.run_sync(add_advice, context.state, error, creates_entry) from None

    return handle


failures = Extension[Files]("failures", around=_wrap_handler)
"""If a call fails, reports to the user which allowed directories can't be reached, for example on an unplugged disk,
and adds advice to the error.
"""
# If a handler that answers at once fails, the ordinary handler gets the call, so only the ordinary one is wrapped.
failures.around_at_once = lambda _method, handler: handler
