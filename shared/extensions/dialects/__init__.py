"""DIALECTS: the methods of dialects that are not in the specification.

`protocol/wire/dialects` calls them by the names below, and writes their results in the form of the dialect's
document. They are not announced to peers that speak the specification; a peer of 2026-07-28 that calls them gets an
answer, with its usual rights. Each result is `{"value": ...}`, with any value.

Most programs never use a dialect, so a document's handlers are imported at its first request.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, TypeVar

from pydantic import ValidationError

from ...errors import InvalidParams
from ...protocol.methods import REQUESTS, Method
from ...protocol.types.base import Params, describe_first_error
from ...protocol.types.tools import ListParams
from ...protocol.versions import V2026_07_28
from ...server.dispatch.context import Context
from ...server.extension import Extension
from ...server.features import Handler
from ...server.run import Run

__all__ = ["DIALECTS", "call_method", "list_all", "read_params"]

P = TypeVar("P", bound=Params)

_METHODS: Mapping[str, Sequence[str]] = {
    "000": ("listTools", "listResources", "tool/execute", "resource/read"),
    "002": ("initialize", "read_resource"),
}
"""The methods by document, each a handler in `HANDLERS` of the document's module."""


def _import_handler(document: str, method: str) -> Handler:
    """Return a handler that imports the document's module when it is called."""

    async def handle(running: Run[Any], context: Context[Any], params: Params) -> dict[str, Any]:
        handlers: Mapping[str, Handler] = import_module(f".document_{document}", __name__).HANDLERS
        return await handlers[method](running, context, params)

    return handle


_HANDLERS = {
    f"dialects/{document}/{method}": _import_handler(document, method)
    for document, methods in _METHODS.items()
    for method in methods
}

DIALECTS = Extension[Any](
    "dialects", methods=[Method(name, Params, first=V2026_07_28) for name in _HANDLERS], handlers=_HANDLERS
)
"""For `Server.open(extensions=...)`."""


_MAX_PAGES = 1_000
"""Maximum number of pages of a list that are read, since a list may be endless."""
_METHOD_BY_NAME = {method.name: method for method in REQUESTS}


async def call_method(running: Run[Any], context: Context[Any], method: str, params: Params) -> dict[str, Any]:
    """Return the result of the protocol's `method` with `params`, instead of a dialect's call. Everything around the
    call, including rules and records, sees the protocol's method. Raises the exceptions of its handler."""
    with context.call.act_as(_METHOD_BY_NAME[method], params):
        return await running.handlers[method](running, context, params)


async def list_all(running: Run[Any], context: Context[Any], method: str, key: str) -> list[dict[str, Any]]:
    """Return the entries that the protocol's `method` lists under `key`, as many as one call may list; empty if the
    server has no such list. A gateway's lists include the entries of the servers behind it. Raises the exceptions of
    its handler."""
    entries: list[dict[str, Any]] = []
    cursor: str | None = None
    if not running.identity.has(_METHOD_BY_NAME[method].capability):
        return entries
    for _ in range(_MAX_PAGES):
        page = await call_method(running, context, method, ListParams(cursor=cursor))
        entries += page[key]
        before, cursor = cursor, page.get("nextCursor")
        if cursor is None or cursor == before or len(entries) >= context.budget.entries:
            break
    return entries[: context.budget.entries]


def read_params(context: Context[Any], model: type[P]) -> P:
    """Return the params of a dialect's call as `model`. Raises InvalidParams."""
    try:
        return model.model_validate(context.call.raw)
    except ValidationError as error:
        raise InvalidParams(describe_first_error(error)) from None
