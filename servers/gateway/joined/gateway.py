"""`gateway`: one server that joins several servers of this process: the bundle's own, and bridges to third-party
servers.

    server = gateway([files, web], prefix="auto")
    async with server.open() as running: ...

Each call is forwarded to its server together with its context. So messages are not copied, and the server's
notifications and requests reach the client that made the call, and no other.
"""

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import anyio
from pydantic import BaseModel

from shared.client.group.names import check_server_name
from shared.errors import InvalidParams, McpError, UnknownTool
from shared.extensions.tasks import tasks
from shared.extensions.tasks.runner import ToolTasks
from shared.protocol.methods import REQUESTS, SET_LEVEL
from shared.protocol.types.base import Implementation
from shared.protocol.types.client import SetLevelParams
from shared.protocol.types.prompts import CompleteParams, GetPromptParams, PromptReference
from shared.protocol.types.resources import ReadResourceParams
from shared.protocol.types.tools import CallToolParams, ListParams
from shared.server.completion import completion
from shared.server.dispatch.context import Context
from shared.server.extension import Extension
from shared.server.features import Handler
from shared.server.run import Run
from shared.server.running import Opening
from shared.server.server import Server
from shared.version import __version__

from .conditions import Conditions
from .directory import EntryLocation, Prefix
from .joined_servers import JoinedServers
from .list_cache import LISTING_SECONDS, PROMPTS, TEMPLATES, TOOLS, Kind
from .server import JoinedServer, Member, unavailability_note
from .uris import qualified_uri, rename_uris


class JoinedSettings(BaseModel):
    """The principals that one run of the gateway serves. If a member has a separate run for some principals, who see
    only a part of its data, the gateway has a separate run for them too."""

    principals: str = ""
    """The name of these principals, as in the members' settings; empty for the run that serves all others."""


def gateway(
    members: Sequence[Member],
    *,
    prefix: Prefix = "auto",
    implementation: Implementation | None = None,
    third_party_names: Collection[str] = (),
) -> Server[JoinedServers]:
    """Return a server that joins all `members`. It does not open them. With the `prefix` "always", every name of a
    tool or prompt gets the name of its server as a prefix; with "auto", only those that several servers use.
    `implementation` is how the server identifies itself. `third_party_names` are the members that are third-party
    servers: the bundle's own servers come before them in lists, and own the entries that both have.

    Raises ValueError for two members with the same name, and for a name that can't be a prefix.
    """
    names = [check_server_name(member.name) for member in members]
    if len(set(names)) < len(names):
        raise ValueError(f"two servers have the same name: {', '.join(names)}")
    rows = {row.name: row for row in REQUESTS} | {SET_LEVEL.name: SET_LEVEL}
    forwarding: Extension[JoinedServers] = Extension(
        "joined",
        methods=[rows[name] for name in _HANDLERS],
        handlers=_HANDLERS,
        fallback=lambda run, context, params: context.state.extension_methods.handle(run, context, params),
    )
    server = Server[JoinedServers](
        implementation or Implementation(name="mcp-server-bundle", version=__version__),
        settings=JoinedSettings,
        extensions=[forwarding, tasks(support=_task_support)],
    )
    server.log_level = None

    @server.lifespan
    async def open_joined(opening: Opening) -> AsyncIterator[JoinedServers]:
        joined = JoinedServers(opening, members, prefix, third_party_names)
        opening.conditions.active = Conditions(joined.servers)
        async with joined.watch_servers():
            yield joined

    @server.on_subscribe
    async def subscribe(context: Context[JoinedServers], uri: str) -> str:
        return await context.state.subscriptions.begin(context, uri)

    @server.on_unsubscribe
    async def unsubscribe(run: Run[JoinedServers], key: str) -> None:
        await run.state.subscriptions.end(key)

    @server.on_wanted
    async def want_resources(run: Run[JoinedServers]) -> None:
        await run.state.want_resources()

    return server


def _list_handler(kind: Kind) -> Handler:
    async def list_all(run: Run[Any], context: Context[JoinedServers], params: ListParams) -> dict[str, Any]:
        directory = context.state.tool_directory_for(context) if kind is TOOLS else context.state.directory
        return await directory.page(kind, context, params.cursor)

    return list_all


async def _list_resources(run: Run[Any], context: Context[JoinedServers], params: ListParams) -> dict[str, Any]:
    await run.changes.call_on_wanted()
    name, size, signer = context.call.method.name, run.server.page_size, run.signer
    return await context.state.resources.page(context, name, params.cursor, size=size, signer=signer)


async def _call_tool(run: Run[Any], context: Context[JoinedServers], params: CallToolParams) -> dict[str, Any]:
    directory = context.state.tool_directory_for(context)
    location = directory.find_known(TOOLS, params.name, context)
    if location is not None:
        try:
            return await _forward_to(location, context, params)
        except UnknownTool:
            if not directory.is_stale(TOOLS):
                raise
    # The list may have changed since the client received it.
    current = await directory.look_up(TOOLS, params.name, context)
    if current is None or current == location:
        raise UnknownTool(f"unknown tool: {params.name[:100]}{unavailability_note(context.state.servers)}")
    return await _forward_to(current, context, params)


async def _task_support(run: Run[Any], context: Context[JoinedServers], name: str) -> ToolTasks:
    directory = context.state.tool_directory_for(context)
    if not any(server.supports_tasks for server in context.state.servers):
        return None
    location = directory.find_known(TOOLS, name, context) or await directory.look_up(TOOLS, name, context)
    return None if location is None else await location.server.task_support(context, location.name, location.task)


async def _get_prompt(run: Run[Any], context: Context[JoinedServers], params: GetPromptParams) -> dict[str, Any]:
    return await _forward_to(await _find_prompt(context, params.name), context, params)


async def _find_prompt(context: Context[JoinedServers], name: str) -> EntryLocation:
    directory = context.state.directory
    location = directory.find_known(PROMPTS, name, context) or await directory.look_up(PROMPTS, name, context)
    if location is None:
        raise InvalidParams(f"unknown prompt: {name[:100]}{unavailability_note(context.state.servers)}")
    return location


async def _forward_to(location: EntryLocation, context: Context[JoinedServers], params: Any) -> dict[str, Any]:
    if params.name != location.name:
        params = params.model_copy(update={"name": location.name})
    result = await location.server.forward(context, context.call.method, params)
    return context.state.owners.with_client_uris(location.server, result)


async def _read_resource(
    run: Run[Any], context: Context[JoinedServers], params: ReadResourceParams
) -> dict[str, Any]:
    async def read(server: JoinedServer, uri_at_server: str) -> dict[str, Any]:
        if uri_at_server == params.uri:
            return await server.forward(context, context.call.method, params)
        result = await server.forward(context, context.call.method, params.model_copy(update={"uri": uri_at_server}))
        return rename_uris(result, partial(qualified_uri, server.name))

    return await context.state.owners.first_result(context, params.uri, read)


async def _complete(run: Run[Any], context: Context[JoinedServers], params: CompleteParams) -> dict[str, Any]:
    if isinstance(params.ref, PromptReference):
        location = await _find_prompt(context, params.ref.name)
        server = location.server
        params = params.model_copy(update={"ref": params.ref.model_copy(update={"name": location.name})})
    else:
        template = await context.state.owners.find_template(context, params.ref.uri)
        if template is None:
            raise InvalidParams(
                f"unknown resource or template: {params.ref.uri[:100]}{unavailability_note(context.state.servers)}"
            )
        server = template.server
        params = params.model_copy(update={"ref": params.ref.model_copy(update={"uri": template.name})})
    row = server.find_method(context, "completion/complete")
    return completion([], 0) if row is None else await server.ask(context, row, params)


async def _set_level(run: Run[Any], context: Context[JoinedServers], params: SetLevelParams) -> dict[str, Any]:
    session = context.link.session
    session.set_log_level(params.level)
    for message in run.conditions.active.values():
        session.log(context.call, message.level, message.data, message.logger)

    async def set_level(server: JoinedServer) -> None:
        # An error of one server must not keep the level from being set at the others.
        with anyio.move_on_after(LISTING_SECONDS), suppress(McpError):
            await server.forward(context, context.call.method, params)

    async with anyio.create_task_group() as tasks:
        for server in context.state.servers:
            if server.running is not None and SET_LEVEL.name in server.running.handlers:
                tasks.start_soon(set_level, server)
    return {}


_HANDLERS: dict[str, Handler] = {
    "tools/list": _list_handler(TOOLS),
    "tools/call": _call_tool,
    "resources/list": _list_resources,
    "resources/templates/list": _list_handler(TEMPLATES),
    "resources/read": _read_resource,
    "prompts/list": _list_handler(PROMPTS),
    "prompts/get": _get_prompt,
    "completion/complete": _complete,
    SET_LEVEL.name: _set_level,
}
"""The handlers of the protocol's methods. Any other method is forwarded by `ExtensionMethods`."""
