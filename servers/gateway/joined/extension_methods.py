"""Routes methods outside the protocol to the server that owns the resource, prompt or tool in their params."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from shared.errors import InvalidParams, MethodNotFound
from shared.protocol.methods import FALLBACK, PROTOCOL_METHODS, Method
from shared.protocol.types.base import describe_first_error
from shared.protocol.types.tools import ListParams
from shared.server.dispatch.context import Context
from shared.server.run import Run

from .directory import Directory
from .list_cache import PROMPTS, TOOLS
from .owners import Owners
from .paging import Pages
from .server import Part, absence_note


def methods_of(parts: Sequence[Part], own: Sequence[Method]) -> list[Method]:
    """Return the methods that the servers have in addition to the methods in `own`, which are handled here."""
    own_names = {method.name for method in own}
    methods: dict[str, Method] = {}
    for part in parts:
        for method in part.running.features.methods if part.running is not None else ():
            if method.name not in PROTOCOL_METHODS and method.name not in own_names:
                methods.setdefault(method.name, replace(method, handler=FALLBACK))
    return list(methods.values())


ToolsOf = Callable[[Context[Any]], Directory]
"""Returns the directory of tools that the client of a call sees."""


class ExtensionMethods:
    """Forwards methods that are not part of the protocol."""

    def __init__(self, parts: Sequence[Part], directory: Directory, owners: Owners, tools_of: ToolsOf) -> None:
        self._parts = parts
        self._directory = directory
        self._owners = owners
        self._tools_of = tools_of

    async def handle(self, running: Run[Any], context: Context[Any], params: Any) -> dict[str, Any]:
        """Handle one request. A list continues from server to server; a request that names a resource, a prompt or a
        tool goes to its owner, any other to the first server that has the method.

        Raises MethodNotFound if no server has it, InvalidParams for invalid params, and the same errors as
        `Part.forward`.
        """
        name = context.call.method.name
        serving = [(part, row) for part in self._parts if (row := part.row(context, name)) is not None]
        if not serving:
            raise MethodNotFound(f"method not found: {name[:100]}{absence_note(self._parts)}")
        raw = context.call.raw
        part, row = serving[0]
        # A client that connected before this server was open did not know the method, so look it up now.
        context.call.method = replace(row, is_stream=context.call.method.is_stream)
        if isinstance(uri := raw.get("uri"), str):

            async def forward(owner: Part, own: str) -> dict[str, Any]:
                own_row = owner.row(context, name)
                if own_row is None:
                    raise MethodNotFound(f"method not found: {name[:100]}")
                return await owner.forward(context, own_row, _validate(own_row, {**raw, "uri": own}))

            return await self._owners.first_result(
                context, uri, forward, serving=lambda owner: owner.row(context, name) is not None
            )
        if issubclass(row.params, ListParams):
            pages = Pages(self._parts, lambda _part, _page: None)
            cursor = _validate(row, raw).cursor
            return await pages.page(context, name, cursor, size=running.server.page_size, signer=running.signer)
        if isinstance(called := raw.get("name"), str):
            tools = self._tools_of(context)
            place = self._directory.find_known(PROMPTS, called, context) or tools.find_known(TOOLS, called, context)
            if place is not None and (own_row := place.part.row(context, name)) is not None:
                return await place.part.forward(context, own_row, _validate(own_row, {**raw, "name": place.own}))
        return await part.forward(context, row, _validate(row, raw))


def _validate(row: Method, raw: dict[str, Any]) -> Any:
    try:
        return row.params.model_validate(raw)
    except ValidationError as error:
        raise InvalidParams(describe_first_error(error)) from None
