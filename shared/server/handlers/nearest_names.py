"""The nearest name for an unknown tool or prompt, among those that the client may see.

The names come from the server's own list for this client, under all rules. So the answer for a hidden name is the
same as for a name that does not exist.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ...errors import InputRequired, McpError, UnknownName
from ...protocol.methods import REQUESTS
from ...protocol.types.tools import ListParams
from ...text import nearest
from ..dispatch.context import Context
from ..run import Run

_LISTS = {"tools/call": "tools", "prompts/get": "prompts"}
"""The list that contains the names for a method."""
_ROWS = {row.name: row for row in REQUESTS}
_MAX_PAGES = 10
"""Maximum number of pages of the list that are searched."""
_MAX_NAME_LENGTH = 128
"""Maximum number of characters in a compared name."""
_CUTOFF = 0.8


async def with_nearest(run: Run[Any], context: Context[Any], error: UnknownName) -> UnknownName:
    """Return the error of the call of `context` with the nearest name; the same error if no name is near."""
    listed = _LISTS.get(context.call.method.handler)
    name = getattr(context.call.params, "name", "")
    if listed is None or len(name) > _MAX_NAME_LENGTH:
        return error
    try:
        method = f"{listed}/list"
        names: list[str] = []
        cursor: str | None = None
        for _ in range(_MAX_PAGES):
            params = ListParams(cursor=cursor)
            inner = replace(context, call=context.call.inner(_ROWS[method], params))
            page = await run.handlers[method](run, inner, params)
            names += [entry["name"] for entry in page[listed]]
            cursor = page.get("nextCursor")
            if cursor is None:
                break
        close = closest(name, names)
    except (McpError, InputRequired):
        # Nobody asked for the list: its failure must not hide the error.
        return error
    return error if close is None else type(error)(f"{error.message}; did you mean {close!r}?", data=error.data)


def closest(name: str, names: Iterable[str]) -> str | None:
    """Return the name among `names` that `name` most likely means, or None: a name that differs only in case and
    separators, a name with which `name` ends (hosts prepend the name of the server), or a similar name."""
    spellings = {_letters(candidate): candidate for candidate in names}
    letters = _letters(name)
    endings = [spelling for spelling in spellings if spelling and letters.endswith(spelling)]
    spelling = max(endings, key=len) if endings else nearest(letters, spellings, _CUTOFF)
    return None if spelling is None else spellings[spelling]


def _letters(name: str) -> str:
    return "".join(filter(str.isalnum, name)).casefold()
