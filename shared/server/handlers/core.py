"""The handlers of the protocol's methods that need the application, and CORE, the extension that contains them.

Each handler accepts the run, the context of the call and its validated params, and returns a result in the form of
the newest version. One whose name ends in `_at_once` answers in the same turn of the event loop, or returns None if
that is not possible (see `AtOnce`). The pages of lists that are the same for every caller are stored in `Listings`.
"""

import sys
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from operator import attrgetter
from typing import Any

from ...concurrency import background
from ...errors import InvalidParams, ResourceNotFound
from ...protocol.methods import REQUESTS
from ...protocol.pagination import find_start, make_cursor, read_position
from ...protocol.session.subscriptions import LISTS, Listen
from ...protocol.types.prompts import CompleteParams, GetPromptParams, PromptReference
from ...protocol.types.resources import CONDITIONAL_READS, ListenParams, ReadResourceParams, UriParams
from ...protocol.types.tools import ListParams
from ..completion import completion
from ..dispatch.context import Context
from ..dispatch.hosts import SIZE_KEY, find_host
from ..dispatch.listings import Listings
from ..extension import Capability, Extension, Follow
from ..run import Run
from .conditional_reads import add_etag, cached_etag
from .dispatch import call_tool, call_tool_at_once


def _page_of(run: Run[Any], name: str, items: list[dict[str, Any]], params: ListParams) -> dict[str, Any]:
    listings: Listings = run.opened[CORE.name]
    return listings.page(name, items, params.cursor, size=run.server.page_size, signer=run.signer)


async def list_tools(run: Run[Any], context: Context[Any], params: ListParams) -> dict[str, Any]:
    """Handle `tools/list`."""
    return list_tools_at_once(run, context, params)


def list_tools_at_once(run: Run[Any], context: Context[Any], params: ListParams) -> dict[str, Any]:
    """Handle `tools/list`. The list is the same for every caller, so anyone may cache it. But one host also receives
    the maximum size of a result, with each tool; other hosts don't read it."""
    listing = _page_of(run, "tools", run.features.tools.entries(run.settings), params)
    host = find_host(context.peer.info)
    if host is None or host.result_characters is None:
        return listing
    size = {SIZE_KEY: host.result_characters}
    return {**listing, "tools": [{**tool, "_meta": {**tool.get("_meta", {}), **size}} for tool in listing["tools"]]}


async def list_resources(run: Run[Any], context: Context[Any], params: ListParams) -> dict[str, Any]:
    """Handle `resources/list`."""
    await run.changes.call_on_wanted()
    name, size = context.peer.name_for_principal("resources"), run.server.page_size
    position = read_position(params.cursor, name=name, signer=run.signer)
    page = run.features.resources.page
    # One more resource than the page has room for is requested, to detect whether there is a next page.
    if not isinstance(position, list):
        start, resources = 0, await page(context, 0, size + 1)
    else:
        start, last = position
        resources = await page(context, start - 1, size + 2)
        if resources and resources[0].uri == last:
            resources = resources[1:]
        else:
            # The list has changed. The last resource of the previous page has another position now, or is gone, which
            # only the whole list shows.
            resources = await page(context, 0, sys.maxsize)
            start = find_start(resources, attrgetter("uri"), start, last)
            resources = resources[start : start + size + 1]
    entries, cursor_field = resources[:size], {}
    if len(resources) > size:
        cursor_field = {"nextCursor": make_cursor([start + size, entries[-1].uri], name=name, signer=run.signer)}
    return {"resources": [resource.to_wire() for resource in entries], **cursor_field}


async def list_templates(run: Run[Any], context: Context[Any], params: ListParams) -> dict[str, Any]:
    """Handle `resources/templates/list`."""
    return list_templates_at_once(run, context, params)


def list_templates_at_once(run: Run[Any], _context: Context[Any], params: ListParams) -> dict[str, Any]:
    """Handle `resources/templates/list`, which is the same for every caller."""
    return _page_of(run, "resourceTemplates", run.features.resources.templates(), params)


async def read_resource(run: Run[Any], context: Context[Any], params: ReadResourceParams) -> dict[str, Any]:
    """Handle `resources/read`. Raises ResourceNotFound, and InvalidParams for an invalid etag."""
    etag = cached_etag(context.peer, params.meta)
    resource, variables = run.features.resources.match(params.uri)
    return add_etag(await resource.read(context, params.uri, variables), etag)


def read_resource_at_once(run: Run[Any], context: Context[Any], params: ReadResourceParams) -> dict[str, Any] | None:
    """Handle `resources/read` if this is possible at once, else return None. Raises the errors of `read_resource`."""
    etag = cached_etag(context.peer, params.meta)
    resource, variables = run.features.resources.match(params.uri)
    result = resource.read_at_once(context, params.uri, variables)
    return None if result is None else add_etag(result, etag)


async def list_prompts(run: Run[Any], context: Context[Any], params: ListParams) -> dict[str, Any]:
    """Handle `prompts/list`."""
    source = run.features.prompts.source
    if source is None:
        return _page_of(run, "prompts", run.features.prompts.entries(), params)
    name = context.peer.name_for_principal("prompts")
    position = read_position(params.cursor, name=name, signer=run.signer)
    entries, end = await run.features.prompts.page(context, source, position, run.server.page_size)
    cursor_field = {} if end is None else {"nextCursor": make_cursor(end, name=name, signer=run.signer)}
    return {"prompts": entries, **cursor_field}


def list_prompts_at_once(run: Run[Any], _context: Context[Any], params: ListParams) -> dict[str, Any] | None:
    """Handle `prompts/list` if all prompts are declared; return None for a source of prompts, which may wait."""
    prompts = run.features.prompts
    return _page_of(run, "prompts", prompts.entries(), params) if prompts.source is None else None


async def get_prompt(run: Run[Any], context: Context[Any], params: GetPromptParams) -> dict[str, Any]:
    """Handle `prompts/get`."""
    return await run.features.prompts.render(context, params.name, params.arguments)


def get_prompt_at_once(run: Run[Any], context: Context[Any], params: GetPromptParams) -> dict[str, Any] | None:
    """Handle `prompts/get` for a prompt that can be rendered at once; return None for others."""
    return run.features.prompts.render_at_once(context, params.name, params.arguments)


async def complete(run: Run[Any], context: Context[Any], params: CompleteParams) -> dict[str, Any]:
    """Handle `completion/complete`. Raises InvalidParams for a prompt or a template that does not exist."""
    features = run.features
    if isinstance(params.ref, PromptReference):
        values = await features.prompts.suggest(context, params.ref.name, params.argument, params.context.arguments)
        if values is not None:
            return completion(*values)
    elif not features.resources.is_declared(params.ref.uri):
        raise InvalidParams(f"unknown resource or template: {params.ref.uri[:100]}")
    return await features.completions.complete(context, params)


def complete_at_once(run: Run[Any], context: Context[Any], params: CompleteParams) -> dict[str, Any] | None:
    """Handle `completion/complete` for an argument of a prompt if its values are known at once, else return None."""
    if not isinstance(params.ref, PromptReference):
        return None
    values = run.features.prompts.suggest_at_once(context, params.ref.name, params.argument)
    return None if values is None else completion(*values)


async def subscribe(run: Run[Any], context: Context[Any], params: UriParams) -> dict[str, Any]:
    """Handle `resources/subscribe` of the handshake era. Raises ResourceNotFound if there is no such resource."""
    subscriptions = context.link.session.subscriptions
    if params.uri in subscriptions.subscribed:
        return {}
    if len(subscriptions.subscribed) >= run.calls.limits.subscriptions:
        raise InvalidParams(f"there are {run.calls.limits.subscriptions} subscriptions, which is the limit")
    # The author's function may take a while to begin the subscription, and the client may cancel it in that time.
    with subscriptions.begin_subscription(params.uri) as still_wanted:
        key = await run.changes.subscribe(context, params.uri, context.link.client)
        unused_keys = subscriptions.subscribe(params.uri, key) if still_wanted() else [key]
    await run.changes.unsubscribe(unused_keys, context.link.client)
    return {}


async def unsubscribe(run: Run[Any], context: Context[Any], params: UriParams) -> dict[str, Any]:
    """Handle `resources/unsubscribe`. Does nothing if there is no such subscription."""
    unused_keys = context.link.session.subscriptions.unsubscribe(params.uri)
    await run.changes.unsubscribe(unused_keys, context.link.client)
    return {}


async def listen(run: Run[Any], context: Context[Any], params: ListenParams) -> dict[str, Any]:
    """Handle `subscriptions/listen`: acknowledge the supported part of the filter, and keep the stream open until
    either side ends it."""
    requested, session = params.notifications, context.link.session
    if len(requested.resource_subscriptions) > run.calls.limits.subscriptions:
        raise InvalidParams(f"a stream may hold at most {run.calls.limits.subscriptions} resource subscriptions")
    uris: dict[str, str] = {}
    others: dict[str, object] = {}
    follows: list[Follow] = []
    call = context.call
    for extension in run.extensions:
        if extension.listen is not None and (served := await extension.listen(run, context, requested)):
            others.update(served[0])
            follows.append(served[1])
    try:
        for uri in dict.fromkeys(requested.resource_subscriptions):
            with suppress(ResourceNotFound):
                # A resource that does not exist is left out of the acknowledgement; the rest is accepted (2026-07-28,
                # Subscriptions).
                uris[uri] = await run.changes.subscribe(context, uri, context.link.client)
        requested_lists = {
            "tools": requested.tools_list_changed,
            "prompts": requested.prompts_list_changed,
            "resources": requested.resources_list_changed,
        }
        lists = frozenset(name for name in LISTS if requested_lists[name] and run.identity.has((name, "listChanged")))
        if "resources" in lists:
            await run.changes.call_on_wanted()
        session.acknowledge(call, Listen(call.id, lists, uris, others))
        await context.link.flush()
        await _follow_until_closing(context, follows)
        session.end_listen(call)
    finally:
        if not call.is_over:
            session.subscriptions.close(call.id)
        await run.changes.unsubscribe(uris.values(), context.link.client)
    return {}


async def _follow_until_closing(context: Context[Any], follows: Sequence[Follow]) -> None:
    """Run `follows` until the server ends the stream."""
    if not follows:
        await context.link.wait_for_closing()
        return
    async with background() as tasks:
        for follow in follows:
            tasks.start_soon(follow)
        await context.link.wait_for_closing()


def _resources_capability(run: Run[Any]) -> dict[str, Any] | None:
    subscribe = {"subscribe": True} if run.changes.on_subscribe is not None else {}
    return {**subscribe, "listChanged": True} if len(run.features.resources) else None


def _prompts_capability(run: Run[Any]) -> dict[str, Any] | None:
    prompts = run.features.prompts
    return {"listChanged": True} if len(prompts) or prompts.source is not None else None


def _completions_capability(run: Run[Any]) -> dict[str, Any] | None:
    features = run.features
    return {} if len(features.completions) or features.prompts.source is not None else None


CORE = Extension[Any](
    "core",
    methods=REQUESTS,
    handlers={
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
    },
    # A capability with a list is declared only if the list has entries, since hosts request every declared list.
    declares=(
        Capability(("tools",), lambda run: {"listChanged": True} if len(run.features.tools) else None),
        Capability(("resources",), _resources_capability),
        Capability(("extensions", CONDITIONAL_READS), lambda run: {} if len(run.features.resources) else None),
        Capability(("prompts",), _prompts_capability),
        Capability(("completions",), _completions_capability),
    ),
)
"""The methods of the protocol. Those without a handler are answered by the session."""
CORE.at_once = {
    call_tool: call_tool_at_once,
    list_tools: list_tools_at_once,
    list_templates: list_templates_at_once,
    list_prompts: list_prompts_at_once,
    read_resource: read_resource_at_once,
    get_prompt: get_prompt_at_once,
    complete: complete_at_once,
}
CORE.lifespan = lambda _run: nullcontext(Listings())
