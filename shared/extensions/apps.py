"""MCP Apps: HTML pages in which a host shows the results of tools (the extension io.modelcontextprotocol/ui,
SEP-1865).

    server = Server(..., extensions=[apps(App("ui://weather/days", read_page))])

    @server.tool(read_only=True, app="ui://weather/days")
    async def forecast(ctx: Context[State], city: str) -> str:
        \"\"\"Return the weather of the next days.\"\"\"
        days = ...
        if shows_apps(ctx):
            show(ctx, {"days": days})
        return text_of(days)

Every client receives the same result. A client that declared that it shows such pages also receives additional data
for the page, in the result's `_meta.view`, and the URI of the page in the list of tools. Pages contain no data, so
anyone who knows the URI of a page may read it, without any scope.
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
"""The identifier of the extension."""
MIME_TYPE = "text/html;profile=mcp-app"
"""The media type of a page. Hosts compare this text exactly."""

_SCHEME = "ui://"
_MAX_TYPES = 100
"""Maximum number of media types that are read from a client's capability, which may contain a million."""

Permission = Literal["camera", "microphone", "geolocation", "clipboardWrite"]
"""A browser permission that a page may request from the host."""


@record
class App:
    """An app: one HTML page. Tools refer to it by its URI. Raises DeclarationError for a URI without `ui://`."""

    uri: str
    page: Callable[[], str]
    """A function that returns the page, a complete HTML document. It is called in a thread at the first read."""
    border: bool = True
    """True if the host should draw a border and a background around the page."""
    permissions: Sequence[Permission] = ()
    """Permissions that the page can use. It must also work without them, since a host need not grant them."""

    def __post_init__(self) -> None:
        if not self.uri.startswith(_SCHEME) or self.uri == _SCHEME:
            raise DeclarationError(f"an app's URI must start with {_SCHEME}: {self.uri!r}")

    @property
    def meta(self) -> dict[str, Any]:
        """The `_meta` of the page for hosts, with a content security policy that lets it load nothing."""
        permissions: dict[str, Any] = (
            {"permissions": {name: {} for name in self.permissions}} if self.permissions else {}
        )
        # An empty policy allows no origin, and the page is a single document, which needs none.
        return {"ui": {"csp": {}, **permissions, "prefersBorder": self.border}}


def shows_apps(context: Context[Any]) -> bool:
    """Return True if the client shows apps, so that it is worth computing data for them."""
    types = find_capability(context.peer.capabilities, ("extensions", UI, "mimeTypes"))
    return isinstance(types, list) and MIME_TYPE in types[:_MAX_TYPES]


def show(context: Context[Any], view: Mapping[str, Any]) -> None:
    """Add data for the app of the called tool to its result. The data is left out if the client does not show apps,
    if it takes more than `MAX_VIEW` bytes, or if the result would exceed the limit of a call with it."""
    if shows_apps(context):
        context.call.view = view


def apps(*pages: App) -> Extension[Any]:
    """Return the extension that serves these apps, and links tools with the option `app` to them."""
    app_handlers = _Apps(pages)
    extension = Extension[Any](
        UI,
        around=app_handlers.around,
        declares=[
            Capability(("extensions", UI), lambda _: {}),
            # Clients read pages as resources, so this capability is needed even without other resources.
            Capability(("resources",), lambda run: None if len(run.features.resources) else {}),
        ],
    )
    extension.around_at_once = app_handlers.around_at_once
    # Innermost, because tools are found by their declared names, and other extensions may rename them.
    extension.rank = -1
    extension.lifespan = app_handlers.check
    extension.open_resources = app_handlers.uris
    return extension


class _Apps:
    """The apps of a server."""

    def __init__(self, pages: Sequence[App]) -> None:
        self._apps = {app.uri: app for app in pages}
        self._results: dict[str, CachedResult] = {}
        self.uris = frozenset(self._apps)
        if len(self._apps) < len(pages):
            raise DeclarationError("two apps have the same URI")

    def check(self, run: Run[Any]) -> AbstractAsyncContextManager[None]:
        """Raise DeclarationError if a tool refers to an unknown app. Return an empty lifespan."""
        for tool in run.features.tools.all():
            if tool.options.app is not None and tool.options.app not in self._apps:
                raise DeclarationError(f"tool {tool.name!r}: there is no app {tool.options.app!r}")
        return nullcontext()

    def around(self, method: Method, handler: Handler) -> Handler:
        """Return a handler for `method` that adds what apps need, if `method` lists tools or reads resources."""
        match method.handler:
            case "tools/list":

                async def list_tools(run: Run[Any], context: Context[Any], params: Params) -> dict[str, Any]:
                    return _add_links(run, context, await handler(run, context, params))

                return list_tools
            case "resources/read":

                def read_resource(
                    run: Run[Any], context: Context[Any], params: ReadResourceParams
                ) -> Awaitable[dict[str, Any]]:
                    app = self._apps.get(params.uri)
                    return handler(run, context, params) if app is None else self._read_page(app, context, params)

                return read_resource
            case _:
                return handler

    def around_at_once(self, method: Method, handler: AtOnce) -> AtOnce:
        """Return a handler for `method` that answers at once, with the same additions. It answers no request for a
        page, which may have to be read first."""

        def answer(run: Run[Any], context: Context[Any], params: Params) -> dict[str, Any] | None:
            if isinstance(params, ReadResourceParams):
                return None if params.uri in self._apps else handler(run, context, params)
            result = handler(run, context, params)
            return None if result is None else _add_links(run, context, result)

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


def _add_links(run: Run[Any], context: Context[Any], result: dict[str, Any]) -> dict[str, Any]:
    """Return the `result` of `tools/list` with the URIs of apps, if the client shows apps."""
    if not shows_apps(context):
        return result

    def add_links() -> dict[str, Any]:
        tools = [_add_link(run, tool) for tool in result["tools"]]
        # A cache must not give this list to clients that don't show apps.
        return {**result, "tools": tools, "cacheScope": "private"}

    return result.get_variant(UI, add_links) if isinstance(result, CachedResult) else add_links()


def _add_link(run: Run[Any], entry: dict[str, Any]) -> dict[str, Any]:
    """Return the entry of a tool with the URI of its app, if it has one."""
    tool = run.features.tools.get(entry["name"])
    uri = None if tool is None else tool.options.app
    if uri is None:
        return entry
    # `ui/resourceUri` is deprecated, but some hosts still read it.
    return {**entry, "_meta": {**entry.get("_meta", {}), "ui": {"resourceUri": uri}, "ui/resourceUri": uri}}
