"""The suggestion in the error for an unknown tool or prompt: the most similar name that the client may see.

The names are those that the server would list for this client. So the error for a hidden name is the same as for a
name that does not exist.
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
"""The list that contains the names, by the method of the failed call."""
_METHODS = {method.name: method for method in REQUESTS}
_MAX_PAGES = 10
"""Maximum number of pages of the list that are searched."""
_MAX_NAME_LENGTH = 128
"""Maximum number of characters in a compared name."""
_MIN_SIMILARITY = 0.8
"""The minimum similarity of a suggested name, from 0 to 1."""


async def add_nearest_name(run: Run[Any], context: Context[Any], error: UnknownName) -> UnknownName:
    """Return `error`, which the call of `context` has raised, with the most similar name, if one is similar."""
    list_name = _LISTS.get(context.call.method.handler)
    name = getattr(context.call.params, "name", "")
    if list_name is None or len(name) > _MAX_NAME_LENGTH:
        return error
    try:
        method = f"{list_name}/list"
        names: list[str] = []
        cursor: str | None = None
        for _ in range(_MAX_PAGES):
            params = ListParams(cursor=cursor)
            inner = replace(context, call=context.call.make_inner(_METHODS[method], params))
            page = await run.handlers[method](run, inner, params)
            names += [entry["name"] for entry in page[list_name]]
            cursor = page.get("nextCursor")
            if cursor is None:
                break
        nearest_name = find_closest(name, names)
    except (McpError, InputRequired):
        # The client did not request the list, so a failure to list must not replace its error.
        return error
    return (
        error
        if nearest_name is None
        else type(error)(f"{error.message}; did you mean {nearest_name!r}?", data=error.data)
    )


def find_closest(name: str, names: Iterable[str]) -> str | None:
    """Return the name among `names` that `name` most likely means: one with which `name` ends, because hosts prepend
    the name of the server, or else a similar one. Case and separators are ignored. None if there is none."""
    spellings = {_normalize(candidate): candidate for candidate in names}
    letters = _normalize(name)
    endings = [spelling for spelling in spellings if spelling and letters.endswith(spelling)]
    spelling = max(endings, key=len) if endings else nearest(letters, spellings, _MIN_SIMILARITY)
    return None if spelling is None else spellings[spelling]


def _normalize(name: str) -> str:
    return "".join(filter(str.isalnum, name)).casefold()
