"""MCP Apps: pages that a host shows instead of a tool's text (the extension io.modelcontextprotocol/ui, SEP-1865).

    server = Server(..., extensions=[apps(App("ui://weather/days", read_page))])

    @server.tool(read_only=True, app="ui://weather/days")
    async def forecast(ctx: Context[State], city: str) -> str:
        \"\"\"Tell the weather of the next days.\"\"\"
        days = ...
        if shows_apps(ctx):
            show(ctx, {"days": days})
        return text_of(days)

A result is the same for every client: data for the page alone is in the result's `_meta.view`, and only for clients
that declared that they show such pages. Other clients do not learn of the pages, and see unchanged lists. A page
contains no data, so anyone who knows its URI may read it, whatever the client declares and its token allows.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, Literal

from anyio import to_thread

from ..errors import DeclarationError
from ..protocol.identity import find_capability
from ..protocol.methods import Method
from ..protocol.records import record
from ..protocol.shaping import CachedResult
from ..protocol.types.base import Params
from ..protocol.types.resources import ETAG, ReadResourceParams
from ..server.dispatch.context import Context
from ..server.dispatch.listings import FRESH_MS
from ..server.extension import Capability, Extension
from ..server.features import AtOnce, Handler
from ..server.handlers.conditional_reads import add_etag, cached_etag
from ..server.run import Run

UI = "io.modelcontextprotocol/ui"
"""The name of the extension."""
MIME_TYPE = "text/html;profile=mcp-app"
"""The media type of a page, exactly as hosts compare it."""

_SCHEME = "ui://"
_MAX_TYPES = 100
"""Maximum number of a client's media types that are considered, since a message may have a million of them."""

Permission = Literal["camera", "microphone", "geolocation", "clipboardWrite"]
"""A permission of the host's browser that a page may request."""


@record
class App:
    """One page, which tools name by its URI. Raises DeclarationError for a URI that can't identify a page."""

    uri: str
    page: Callable[[], str]
    """Reads the page, one whole HTML document. It is called in a thread, when a client first reads it."""
    border: bool = True
    """True if the host should draw a border and a background around it."""
    permissions: Sequence[Permission] = ()
    """Permissions that improve the page; a host need not grant them."""

    def __post_init__(self) -> None:
        if not self.uri.startswith(_SCHEME) or self.uri == _SCHEME:
            raise DeclarationError(f"an app's URI must start with {_SCHEME}: {self.uri!r}")

    @property
    def meta(self) -> dict[str, Any]:
        """The `_meta` for hosts, with rules for the page: it may load nothing from anywhere."""
        permissions: dict[str, Any] = (
            {"permissions": {name: {} for name in self.permissions}} if self.permissions else {}
        )
        # An empty policy allows no origin at all: the page is one document, and hosts would block anything else by
        # default.
        return {"ui": {"csp": {}, **permissions, "prefersBorder": self.border}}


def shows_apps(context: Context[Any]) -> bool:
    """Return True if the client shows pages, so that data for them is useful."""
    types = find_capability(context.peer.capabilities, ("extensions", UI, "mimeTypes"))
    return isinstance(types, list) and MIME_TYPE in types[:_MAX_TYPES]


def show(context: Context[Any], view: Mapping[str, Any]) -> None:
    """Send data for the page of the called tool along with the result. The data is omitted if the client shows no
    pages, if it takes more than `MAX_VIEW` bytes, or if the whole result exceeds the limit of a call."""
    if shows_apps(context):
        context.call.view = view


def apps(*pages: App) -> Extension[Any]:
    """Return the extension that serves these pages, and links them to the tools that name one of them as their
    `app`."""
    served = _Apps(pages)
    extension = Extension[Any](
        UI,
        around=served.around,
        declares=[
            Capability(("extensions", UI), lambda _: {}),
            # Pages are read like resources, even if there are no other resources.
            Capability(("resources",), lambda running: None if len(running.features.resources) else {}),
        ],
    )
    extension.around_at_once = served.around_at_once
    # Tools are linked by their declared names, before anything renames them.
    extension.rank = -1
    extension.lifespan = served.check
    extension.open_resources = served.uris
    return extension


class _Apps:
    """The pages of a server, by their URIs."""

    def __init__(self, pages: Sequence[App]) -> None:
        self._apps = {app.uri: app for app in pages}
        self._results: dict[str, CachedResult] = {}
        self.uris = frozenset(self._apps)
        if len(self._apps) < len(pages):
            raise DeclarationError("two apps have the same URI")

    def check(self, running: Run[Any]) -> AbstractAsyncContextManager[None]:
        """Raise DeclarationError if a tool names an unknown page."""
        for tool in running.features.tools.all():
            if tool.options.app is not None and tool.options.app not in self._apps:
                raise DeclarationError(f"tool {tool.name!r}: there is no app {tool.options.app!r}")
        return nullcontext()

    def around(self, method: Method, handler: Handler) -> Handler:
        """Return the handler of `method` with the additions for clients that show pages; for others nothing
        changes."""
        match method.handler:
            case "tools/list":

                async def list_tools(running: Run[Any], context: Context[Any], params: Params) -> dict[str, Any]:
                    return _add_links(running, context, await handler(running, context, params))

                return list_tools
            case "resources/read":

                def read_resource(
                    running: Run[Any], context: Context[Any], params: ReadResourceParams
                ) -> Awaitable[dict[str, Any]]:
                    app = self._apps.get(params.uri)
                    return handler(running, context, params) if app is None else self._read_page(app, context, params)

                return read_resource
            case _:
                return handler

    def around_at_once(self, method: Method, handler: AtOnce) -> AtOnce:
        """Return the handler of `method` that answers at once, with the same additions; a page may have to be read
        first."""

        def answer(running: Run[Any], context: Context[Any], params: Params) -> dict[str, Any] | None:
            if isinstance(params, ReadResourceParams):
                return None if params.uri in self._apps else handler(running, context, params)
            result = handler(running, context, params)
            return None if result is None else _add_links(running, context, result)

        return answer

    async def _read_page(self, app: App, context: Context[Any], params: ReadResourceParams) -> dict[str, Any]:
        etag = cached_etag(context.peer, params.meta)
        cached = self._results.get(app.uri)
        if cached is None:
            text = await to_thread.run_sync(app.page)
            content = {"uri": app.uri, "mimeType": MIME_TYPE, "text": text, "_meta": app.meta}
            result = add_etag({"contents": [content], "ttlMs": FRESH_MS, "cacheScope": "public"}, None)
            cached = self._results[app.uri] = CachedResult(result)
        return add_etag(cached, etag) if etag == cached["_meta"][ETAG] else cached


def _add_links(running: Run[Any], context: Context[Any], result: dict[str, Any]) -> dict[str, Any]:
    """Return a list of tools with the URIs of their pages, if the client shows pages."""
    if not shows_apps(context):
        return result

    def add_links() -> dict[str, Any]:
        tools = [_add_link(running, tool) for tool in result["tools"]]
        # The list is not for the caches of other clients, which may have declared nothing.
        return {**result, "tools": tools, "cacheScope": "private"}

    return result.get_variant(UI, add_links) if isinstance(result, CachedResult) else add_links()


def _add_link(running: Run[Any], entry: dict[str, Any]) -> dict[str, Any]:
    """Return a tool of a list with the URI of its page."""
    tool = running.features.tools.get(entry["name"])
    uri = None if tool is None else tool.options.app
    if uri is None:
        return entry
    # The flat form is deprecated, but hosts still read it.
    return {**entry, "_meta": {**entry.get("_meta", {}), "ui": {"resourceUri": uri}, "ui/resourceUri": uri}}
