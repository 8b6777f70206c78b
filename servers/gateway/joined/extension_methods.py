"""Forwards methods outside the protocol to the server that owns the resource, prompt or tool in their params."""

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
from .paging import PagedLists
from .server import JoinedServer, unavailability_note


def methods_of(servers: Sequence[JoinedServer], own_methods: Sequence[Method]) -> list[Method]:
    """Return the methods of the servers that are neither part of the protocol nor in `own_methods`, which the gateway
    handles."""
    own_names = {method.name for method in own_methods}
    methods: dict[str, Method] = {}
    for server in servers:
        for method in server.running.features.methods if server.running is not None else ():
            if method.name not in PROTOCOL_METHODS and method.name not in own_names:
                methods.setdefault(method.name, replace(method, handler=FALLBACK))
    return list(methods.values())


ToolDirectoryFor = Callable[[Context[Any]], Directory]
"""Returns the directory of tools that the client of a call sees."""


class ExtensionMethods:
    """Forwards methods that are not part of the protocol."""

    def __init__(
        self,
        servers: Sequence[JoinedServer],
        directory: Directory,
        owners: Owners,
        tool_directory_for: ToolDirectoryFor,
    ) -> None:
        self._servers = servers
        self._directory = directory
        self._owners = owners
        self._tool_directory_for = tool_directory_for

    async def handle(self, run: Run[Any], context: Context[Any], params: Any) -> dict[str, Any]:
        """Handle one request. If the method is a list, the entries of all servers are returned. A request with the
        URI of a resource or the name of a prompt or tool goes to the server that owns it. Any other goes to the first
        server that has the method.

        Raises MethodNotFound if no server has it, InvalidParams for invalid params, and the same errors as
        `JoinedServer.forward`.
        """
        name = context.call.method.name
        supporting = [
            (server, row) for server in self._servers if (row := server.find_method(context, name)) is not None
        ]
        if not supporting:
            raise MethodNotFound(f"method not found: {name[:100]}{unavailability_note(self._servers)}")
        raw = context.call.raw
        server, row = supporting[0]
        # The gateway took the declaration of the method from any of its servers. Use that of the server to ask.
        context.call.method = replace(row, is_stream=context.call.method.is_stream)
        if isinstance(uri := raw.get("uri"), str):

            async def forward(owner: JoinedServer, uri_at_server: str) -> dict[str, Any]:
                owner_row = owner.find_method(context, name)
                if owner_row is None:
                    raise MethodNotFound(f"method not found: {name[:100]}")
                return await owner.forward(context, owner_row, _validate(owner_row, {**raw, "uri": uri_at_server}))

            return await self._owners.first_result(
                context, uri, forward, can_serve=lambda owner: owner.find_method(context, name) is not None
            )
        if issubclass(row.params, ListParams):
            pages = PagedLists(self._servers, lambda _server, _page: None)
            cursor = _validate(row, raw).cursor
            return await pages.page(context, name, cursor, size=run.server.page_size, signer=run.signer)
        if isinstance(called_name := raw.get("name"), str):
            tools = self._tool_directory_for(context)
            location = self._directory.find_known(PROMPTS, called_name, context) or tools.find_known(
                TOOLS, called_name, context
            )
            if location is not None and (owner_row := location.server.find_method(context, name)) is not None:
                return await location.server.forward(
                    context, owner_row, _validate(owner_row, {**raw, "name": location.name})
                )
        return await server.forward(context, row, _validate(row, raw))


def _validate(row: Method, raw: dict[str, Any]) -> Any:
    try:
        return row.params.model_validate(raw)
    except ValidationError as error:
        raise InvalidParams(describe_first_error(error)) from None
