"""`gateway`: one server that consists of several in this process, either the bundle's own or bridges to third-party
ones.

    server = gateway([files, web], prefix="auto")
    async with server.open() as running: ...

Each call is forwarded to its server with its own context. So nothing is copied or translated here, and the server's
notifications and requests reach only that client.
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
from .directory import EntryPlace, Prefix
from .joined_servers import JoinedServers
from .list_cache import LISTING_SECONDS, PROMPTS, TEMPLATES, TOOLS, Kind
from .server import Member, Part, absence_note
from .uris import full_uri, rename_uris


class JoinedSettings(BaseModel):
    """The principals that one run serves. Data that members keep separate must be separate here as well, so each of
    their principals has its own run."""

    principals: str = ""
    """The name of the principals that it serves; empty for all others."""


def gateway(
    members: Sequence[Member],
    *,
    prefix: Prefix = "auto",
    implementation: Implementation | None = None,
    foreign: Collection[str] = (),
) -> Server[JoinedServers]:
    """Return a server that joins all `members`; it opens none of them. Names of tools and prompts get the name of
    their server as a prefix if several servers use them, or `always`; `implementation` is the name that it reports.
    The names in `foreign` are third-party servers, which come after the bundle's own.

    Raises ValueError for two members with the same name, and for a name that is not allowed.
    """
    names = [check_server_name(member.name) for member in members]
    if len(set(names)) < len(names):
        raise ValueError(f"two servers have the same name: {', '.join(names)}")
    rows = {row.name: row for row in REQUESTS} | {SET_LEVEL.name: SET_LEVEL}
    forwarding: Extension[JoinedServers] = Extension(
        "joined",
        methods=[rows[name] for name in _HANDLERS],
        handlers=_HANDLERS,
        fallback=lambda running, context, params: context.state.extension_methods.handle(running, context, params),
    )
    server = Server[JoinedServers](
        implementation or Implementation(name="mcp-server-bundle", version=__version__),
        settings=JoinedSettings,
        extensions=[forwarding, tasks(support=_task_support)],
    )
    server.log_level = None

    @server.lifespan
    async def open_joined(opening: Opening) -> AsyncIterator[JoinedServers]:
        joined = JoinedServers(opening, members, prefix, foreign)
        opening.conditions.active = Conditions(joined.parts)
        async with joined.watch_parts():
            yield joined

    @server.on_subscribe
    async def subscribe(context: Context[JoinedServers], uri: str) -> str:
        return await context.state.subscriptions.begin(context, uri)

    @server.on_unsubscribe
    async def unsubscribe(running: Run[JoinedServers], key: str) -> None:
        await running.state.subscriptions.end(key)

    @server.on_wanted
    async def want_resources(running: Run[JoinedServers]) -> None:
        await running.state.want_resources()

    return server


def _list_handler(kind: Kind) -> Handler:
    async def list_all(running: Run[Any], context: Context[JoinedServers], params: ListParams) -> dict[str, Any]:
        directory = context.state.tools_of(context) if kind is TOOLS else context.state.directory
        return await directory.page(kind, context, params.cursor)

    return list_all


async def _list_resources(running: Run[Any], context: Context[JoinedServers], params: ListParams) -> dict[str, Any]:
    await running.changes.call_on_wanted()
    name, size, signer = context.call.method.name, running.server.page_size, running.signer
    return await context.state.resources.page(context, name, params.cursor, size=size, signer=signer)


async def _call_tool(running: Run[Any], context: Context[JoinedServers], params: CallToolParams) -> dict[str, Any]:
    directory = context.state.tools_of(context)
    place = directory.find_known(TOOLS, params.name, context)
    if place is not None:
        try:
            return await _forward_to(place, context, params)
        except UnknownTool:
            if not directory.is_stale(TOOLS):
                raise
    # The list may have changed since the client received it.
    current = await directory.look_up(TOOLS, params.name, context)
    if current is None or current == place:
        raise UnknownTool(f"unknown tool: {params.name[:100]}{absence_note(context.state.parts)}")
    return await _forward_to(current, context, params)


async def _task_support(running: Run[Any], context: Context[JoinedServers], name: str) -> ToolTasks:
    directory = context.state.tools_of(context)
    if not any(part.has_tasks for part in context.state.parts):
        return None
    place = directory.find_known(TOOLS, name, context) or await directory.look_up(TOOLS, name, context)
    return None if place is None else await place.part.task_support(context, place.own, place.task)


async def _get_prompt(running: Run[Any], context: Context[JoinedServers], params: GetPromptParams) -> dict[str, Any]:
    return await _forward_to(await _find_prompt(context, params.name), context, params)


async def _find_prompt(context: Context[JoinedServers], name: str) -> EntryPlace:
    directory = context.state.directory
    place = directory.find_known(PROMPTS, name, context) or await directory.look_up(PROMPTS, name, context)
    if place is None:
        raise InvalidParams(f"unknown prompt: {name[:100]}{absence_note(context.state.parts)}")
    return place


async def _forward_to(place: EntryPlace, context: Context[JoinedServers], params: Any) -> dict[str, Any]:
    if params.name != place.own:
        params = params.model_copy(update={"name": place.own})
    result = await place.part.forward(context, context.call.method, params)
    return context.state.owners.show_uris(place.part, result)


async def _read_resource(
    running: Run[Any], context: Context[JoinedServers], params: ReadResourceParams
) -> dict[str, Any]:
    async def read(part: Part, own: str) -> dict[str, Any]:
        if own == params.uri:
            return await part.forward(context, context.call.method, params)
        result = await part.forward(context, context.call.method, params.model_copy(update={"uri": own}))
        return rename_uris(result, partial(full_uri, part.name))

    return await context.state.owners.first_result(context, params.uri, read)


async def _complete(running: Run[Any], context: Context[JoinedServers], params: CompleteParams) -> dict[str, Any]:
    if isinstance(params.ref, PromptReference):
        place = await _find_prompt(context, params.ref.name)
        part = place.part
        params = params.model_copy(update={"ref": params.ref.model_copy(update={"name": place.own})})
    else:
        template = await context.state.owners.find_template(context, params.ref.uri)
        if template is None:
            raise InvalidParams(
                f"unknown resource or template: {params.ref.uri[:100]}{absence_note(context.state.parts)}"
            )
        part = template.part
        params = params.model_copy(update={"ref": params.ref.model_copy(update={"uri": template.own})})
    row = part.row(context, "completion/complete")
    return completion([], 0) if row is None else await part.ask(context, row, params)


async def _set_level(running: Run[Any], context: Context[JoinedServers], params: SetLevelParams) -> dict[str, Any]:
    session = context.link.session
    session.set_log_level(params.level)
    for message in running.conditions.active.values():
        session.log(context.call, message.level, message.data, message.logger)

    async def set_level(part: Part) -> None:
        # A server that fails here is treated like one without log levels.
        with anyio.move_on_after(LISTING_SECONDS), suppress(McpError):
            await part.forward(context, context.call.method, params)

    async with anyio.create_task_group() as tasks:
        for part in context.state.parts:
            if part.running is not None and SET_LEVEL.name in part.running.handlers:
                tasks.start_soon(set_level, part)
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
