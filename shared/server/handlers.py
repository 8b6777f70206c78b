"""One function per MCP method that needs the application, and the table of them.

Each takes the server, the call's context and its validated params, and returns a result of the newest version.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import InvalidParams, MethodNotFound, ResourceNotFound
from ..protocol.paging import cursor_at, page, position_of
from ..protocol.session.subscriptions import LISTS, Listen
from ..protocol.types.prompts import CompleteParams, GetPromptParams, PromptReference
from ..protocol.types.resources import (
    DirectoryParams,
    ListenParams,
    ReadResourceParams,
    SubscriptionFilter,
    UriParams,
)
from ..protocol.types.tools import ListParams
from .completion import completion
from .context import Context
from .tools import call_tool

if TYPE_CHECKING:
    from .app import Server
    from .skills import Skills

__all__ = [
    "HANDLERS",
    "Handler",
    "complete",
    "get_prompt",
    "get_skill",
    "list_prompts",
    "list_resources",
    "list_skills",
    "list_templates",
    "list_tools",
    "listen",
    "read_directory",
    "read_resource",
    "subscribe",
    "unsubscribe",
]

T = TypeVar("T")

Handler = Callable[["Server[Any]", Context[Any], Any], Awaitable[dict[str, Any]]]


def _listing(app: "Server[Any]", what: str, items: list[dict[str, Any]], params: ListParams) -> dict[str, Any]:
    return app.listings.page(what, items, params.cursor, size=app.page_size, seal=app.seal)


def _cut(app: "Server[Any]", what: str, items: Sequence[T], cursor: str | None) -> tuple[Sequence[T], dict[str, str]]:
    """The page of a list that may differ from caller to caller, and what the result says of the next one."""
    shown, following = page(items, cursor, name=what, size=app.page_size, seal=app.seal)
    return shown, {} if following is None else {"nextCursor": following}


async def list_tools(app: "Server[Any]", context: Context[Any], params: ListParams) -> dict[str, Any]:
    """`tools/list`: the same for every caller, so it may be cached by anyone."""
    return _listing(app, "tools", app.tools.listed(app.settings), params)


async def list_resources(app: "Server[Any]", context: Context[Any], params: ListParams) -> dict[str, Any]:
    """`resources/list`."""
    await app.changes.want_resources()
    start = position_of(params.cursor, name="resources", seal=app.seal)
    end = start + app.page_size
    # One more than is shown, to know whether there is a next page.
    found = await app.resources.page(context, start, app.page_size + 1)
    more = {"nextCursor": cursor_at(end, name="resources", seal=app.seal)} if len(found) > app.page_size else {}
    return {"resources": [one.to_wire() for one in found[: app.page_size]], **more}


async def list_templates(app: "Server[Any]", context: Context[Any], params: ListParams) -> dict[str, Any]:
    """`resources/templates/list`."""
    return _listing(app, "resourceTemplates", app.resources.templates(), params)


async def read_resource(app: "Server[Any]", context: Context[Any], params: ReadResourceParams) -> dict[str, Any]:
    """`resources/read`. Raises ResourceNotFound."""
    resource, variables = app.resources.match(params.uri)
    return await resource.read(context, params.uri, variables)


async def list_prompts(app: "Server[Any]", context: Context[Any], params: ListParams) -> dict[str, Any]:
    """`prompts/list`."""
    source = app.prompts.source
    if source is None:
        return _listing(app, "prompts", app.prompts.listed(), params)
    at = position_of(params.cursor, name="prompts", seal=app.seal)
    shown, following = await app.prompts.page(context, source, at, app.page_size)
    more = {} if following is None else {"nextCursor": cursor_at(following, name="prompts", seal=app.seal)}
    return {"prompts": shown, **more}


async def get_prompt(app: "Server[Any]", context: Context[Any], params: GetPromptParams) -> dict[str, Any]:
    """`prompts/get`."""
    return await app.prompts.render(context, params.name, params.arguments)


async def complete(app: "Server[Any]", context: Context[Any], params: CompleteParams) -> dict[str, Any]:
    """`completion/complete`. Raises InvalidParams for a prompt or a template that does not exist."""
    if isinstance(params.ref, PromptReference):
        found = await app.prompts.suggest(context, params.ref.name, params.argument, params.context.arguments)
        if found is not None:
            return completion(*found)
    elif not app.resources.knows(params.ref.uri):
        raise InvalidParams(f"unknown resource or template: {params.ref.uri[:100]}")
    return await app.completions.complete(context, params)


async def subscribe(app: "Server[Any]", context: Context[Any], params: UriParams) -> dict[str, Any]:
    """`resources/subscribe` of the handshake era. Raises ResourceNotFound where the URI is not served."""
    subscriptions = context.link.session.subscriptions
    if params.uri in subscriptions.subscribed:
        return {}
    if len(subscriptions.subscribed) >= app.limits.subscriptions:
        raise InvalidParams(f"there are {app.limits.subscriptions} subscriptions, the most there may be")
    with subscriptions.coming(params.uri) as still_wanted:
        key = await app.changes.hold(context, params.uri, context.link.client)
        unheld = subscriptions.subscribe(params.uri, key) if still_wanted() else [key]
    await app.changes.release(unheld, context.link.client)
    return {}


async def unsubscribe(app: "Server[Any]", context: Context[Any], params: UriParams) -> dict[str, Any]:
    """`resources/unsubscribe`; fine where there is no such subscription."""
    unheld = context.link.session.subscriptions.unsubscribe(params.uri)
    await app.changes.release(unheld, context.link.client)
    return {}


async def listen(app: "Server[Any]", context: Context[Any], params: ListenParams) -> dict[str, Any]:
    """`subscriptions/listen`: acknowledges what is served, then stays open until either side ends it."""
    wanted, session = params.notifications, context.link.session
    if len(wanted.resource_subscriptions) > app.limits.subscriptions:
        raise InvalidParams(f"a stream may hold {app.limits.subscriptions} resource subscriptions at most")
    uris: dict[str, str] = {}
    call = context.call
    try:
        for uri in dict.fromkeys(wanted.resource_subscriptions):
            with suppress(ResourceNotFound):
                uris[uri] = await app.changes.hold(context, uri, context.link.client)
        lists = _wanted_lists(app, wanted)
        if "resources" in lists:
            await app.changes.want_resources()
        session.acknowledge(call, Listen(call.id, lists, uris))
        await context.link.flush()
        await context.link.closing()
        session.end_listen(call)
    finally:
        if not call.is_over:
            session.subscriptions.close(call.id)
        await app.changes.release(uris.values(), context.link.client)
    return {}


def _wanted_lists(app: "Server[Any]", wanted: SubscriptionFilter) -> frozenset[str]:
    asked = {
        "tools": wanted.tools_list_changed,
        "prompts": wanted.prompts_list_changed,
        "resources": wanted.resources_list_changed,
    }
    return frozenset(name for name in LISTS if asked[name] and app.identity.has((name, "listChanged")))


def _skills(app: "Server[Any]") -> "Skills":
    if app.skills is None:
        raise MethodNotFound("this server has no skills")
    return app.skills


async def list_skills(app: "Server[Any]", context: Context[Any], params: ListParams) -> dict[str, Any]:
    """`skills/list`."""
    shown, more = _cut(app, "skills", await _skills(app).source.list(context), params.cursor)
    return {"skills": [skill.entry() for skill in shown], **more}


async def get_skill(app: "Server[Any]", context: Context[Any], params: UriParams) -> dict[str, Any]:
    """`skills/get`: one that is listed, or one that is not. Raises ResourceNotFound."""
    return {"skill": (await _skills(app).find(context, params.uri)).entry()}


async def read_directory(app: "Server[Any]", context: Context[Any], params: DirectoryParams) -> dict[str, Any]:
    """`resources/directory/read`: what stands directly in a directory of a skill. Raises ResourceNotFound."""
    children = await _skills(app).children(context, params.uri)
    shown, more = _cut(app, f"directory:{params.uri}", children, params.cursor)
    return {"resources": [child.to_wire() for child in shown], **more}


HANDLERS: dict[str, Handler] = {
    "tools/list": list_tools,
    "tools/call": call_tool,
    "resources/list": list_resources,
    "resources/templates/list": list_templates,
    "resources/read": read_resource,
    "resources/subscribe": subscribe,
    "resources/unsubscribe": unsubscribe,
    "prompts/list": list_prompts,
    "prompts/get": get_prompt,
    "completion/complete": complete,
    "subscriptions/listen": listen,
    "skills/list": list_skills,
    "skills/get": get_skill,
    "resources/directory/read": read_directory,
}
