"""DIALECTS: handlers for the methods of dialects that have no equivalent in the specification.

`protocol/wire/dialects` says what dialects are. It turns such a request into one for an internal method, and writes
the result in the form of the dialect. The internal methods are called `dialects/`, the number of the document, a
slash, and the name in the document. They are not announced. A peer of 2026-07-28 that calls one gets an answer, under
the usual access control. Each result is `{"value": ...}`, with any value.

Most programs never use a dialect, so the handlers of a document are imported with its first request.
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
"""The names of the methods, by document. Their handlers are in `HANDLERS` of the document's module."""


def _import_handler(document: str, method: str) -> Handler:
    """Return a handler that imports the module of the document when it is called."""

    async def handle(run: Run[Any], context: Context[Any], params: Params) -> dict[str, Any]:
        handlers: Mapping[str, Handler] = import_module(f".document_{document}", __name__).HANDLERS
        return await handlers[method](run, context, params)

    return handle


_HANDLERS = {
    f"dialects/{document}/{method}": _import_handler(document, method)
    for document, methods in _METHODS.items()
    for method in methods
}

DIALECTS = Extension[Any](
    "dialects", methods=[Method(name, Params, first=V2026_07_28) for name in _HANDLERS], handlers=_HANDLERS
)
"""The extension, for `Server.open(extensions=...)`."""


_MAX_PAGES = 1_000
"""Maximum number of pages of a list that are read, since the list of another server may be endless."""
_METHOD_BY_NAME = {method.name: method for method in REQUESTS}


async def call_method(run: Run[Any], context: Context[Any], method: str, params: Params) -> dict[str, Any]:
    """Return the result of the protocol's `method` with `params`, on behalf of a dialect's call. Access control, the
    audit log and others see a call of this method. Raises the exceptions of its handler."""
    with context.call.act_as(_METHOD_BY_NAME[method], params):
        return await run.handlers[method](run, context, params)


async def list_all(run: Run[Any], context: Context[Any], method: str, key: str) -> list[dict[str, Any]]:
    """Return the entries of the list `key` that the protocol's `method` returns, from all its pages, up to the limit
    of a call. Empty if the server has no such list. Raises the exceptions of the handler."""
    entries: list[dict[str, Any]] = []
    cursor: str | None = None
    if not run.identity.has(_METHOD_BY_NAME[method].capability):
        return entries
    for _ in range(_MAX_PAGES):
        page = await call_method(run, context, method, ListParams(cursor=cursor))
        entries += page[key]
        before, cursor = cursor, page.get("nextCursor")
        if cursor is None or cursor == before or len(entries) >= context.budget.entries:
            break
    return entries[: context.budget.entries]


def read_params(context: Context[Any], model: type[P]) -> P:
    """Return the params of a dialect's call as a `model`. Raises InvalidParams."""
    try:
        return model.model_validate(context.call.raw)
    except ValidationError as error:
        raise InvalidParams(describe_first_error(error)) from None
