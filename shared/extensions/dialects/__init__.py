"""DIALECTS: what the methods of dialects do that are no methods of the specification.

`protocol/wire/dialects` has them called under the names below and writes their results in the form of its document.
Nothing announces them to a peer that speaks the specification; one of 2026-07-28 that names them is answered, and has
the rights that it has everywhere. Each result is `{"value": ...}`, whatever that is.

Most programs never meet a dialect: a document's handlers are loaded with its first request.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, TypeVar

from pydantic import ValidationError

from ...errors import InvalidParams
from ...protocol.methods import REQUESTS, Method
from ...protocol.types.base import Params, first_fault
from ...protocol.types.tools import ListParams
from ...protocol.versions import V2026_07_28
from ...server.dispatch.context import Context
from ...server.extension import Extension
from ...server.features import Handler
from ...server.run import Run

__all__ = ["DIALECTS", "ask", "list_all", "read_params"]

P = TypeVar("P", bound=Params)

_METHODS: Mapping[str, Sequence[str]] = {
    "000": ("listTools", "listResources", "tool/execute", "resource/read"),
    "002": ("initialize", "read_resource"),
}
"""The methods by document, each a handler in `HANDLERS` of the document's module."""


def _handler(document: str, method: str) -> Handler:
    async def handle(running: Run[Any], context: Context[Any], params: Params) -> dict[str, Any]:
        handlers: Mapping[str, Handler] = import_module(f".document_{document}", __name__).HANDLERS
        return await handlers[method](running, context, params)

    return handle


_HANDLERS = {
    f"dialects/{document}/{method}": _handler(document, method)
    for document, methods in _METHODS.items()
    for method in methods
}

DIALECTS = Extension[Any](
    "dialects",
    methods=[Method(name, Params, first=V2026_07_28) for name in _HANDLERS],
    handlers=_HANDLERS,
)
"""For `Server.open(extensions=...)`."""


_MOST_PAGES = 1_000
"""Pages of a list that has no end, before it counts as one."""
_ROWS = {row.name: row for row in REQUESTS}


async def ask(running: Run[Any], context: Context[Any], method: str, params: Params) -> dict[str, Any]:
    """The result of the protocol's `method` with `params`, for which the call of a dialect stands: whatever is around
    it, rules and records among that, has the call as it is then. Raises what handles it raises."""
    with context.call.standing_for(_ROWS[method], params):
        return await running.handlers[method](running, context, params)


async def list_all(running: Run[Any], context: Context[Any], method: str, key: str) -> list[dict[str, Any]]:
    """What the protocol's `method` lists under `key`, as many entries as one call may list; none where the server has
    no such list. What a server declares is not all: one with others behind it has what those list. Raises what
    handles it raises."""
    found: list[dict[str, Any]] = []
    cursor: str | None = None
    if not running.identity.has(_ROWS[method].capability):
        return found
    for _ in range(_MOST_PAGES):
        page = await ask(running, context, method, ListParams(cursor=cursor))
        found += page[key]
        before, cursor = cursor, page.get("nextCursor")
        if cursor is None or cursor == before or len(found) >= context.budget.entries:
            break
    return found[: context.budget.entries]


def read_params(context: Context[Any], model: type[P]) -> P:
    """The params of a dialect's call as `model` has them. Raises InvalidParams."""
    try:
        return model.model_validate(context.call.raw)
    except ValidationError as error:
        raise InvalidParams(first_fault(error)) from None
