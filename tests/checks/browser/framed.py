"""An app in the host of `app_host.py`, with the real server behind it.

What the app asks of the server goes there by this project's client; all else that a host may be asked for is agreed
to, and stands in what the host has received.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from playwright.async_api import FrameLocator, Page

from shared import Server
from shared.client import Client, ClientOptions, McpError
from shared.program.settings.option_parser import OptionParser
from shared.program.settings.options import Group, read_options
from shared.testing import connected
from tests.checks.browser.app_host import AppHost, open_app
from tests.checks.browser.site import Site

__all__ = ["Framed", "show_app"]

APPS = ClientOptions(
    mode="2025-11-25",
    capabilities={"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}},
)
"""A client that shows apps, in the version that hosts with apps speak."""
CAN: Mapping[str, Any] = {
    "serverTools": {},
    "serverResources": {},
    "openLinks": {},
    "message": {"text": {}},
    "updateModelContext": {"text": {}},
}
OF_SERVER = ("tools/call", "resources/read")


class Framed:
    """An app that shows a result, and its requests."""

    def __init__(self, client: Client) -> None:
        self.host: AppHost
        self.calls: list[tuple[str, dict[str, Any]]] = []
        """The tools that the app has called, with their arguments."""
        self._client = client
        self._open: set[asyncio.Task[dict[str, Any]]] = set()

    @property
    def view(self) -> FrameLocator:
        """Returns the document of the app."""
        return self.host.app

    async def answer(self, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        """Returns the answer of the host to the app; None after the end of the test."""
        if method not in OF_SERVER:
            return {"result": {}}
        if method == "tools/call":
            self.calls.append((params["name"], params["arguments"]))
        asking = asyncio.ensure_future(self._client.request(method, params))
        self._open.add(asking)
        try:
            return {"result": await asking}
        except McpError as error:
            return {"error": {"code": -32000, "message": str(error)}}
        except (ConnectionError, asyncio.CancelledError):
            return None
        finally:
            self._open.discard(asking)

    async def give_up(self) -> None:
        """Stops all answers of the server, since a request for changes would wait for one."""
        for asking in list(self._open):
            asking.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)


@asynccontextmanager
async def client_of(app: Server[Any], *options: str | Path) -> AsyncIterator[Client]:
    """Opens a server in the process of the test with these command line options; yields a client that shows apps."""
    parser = OptionParser("test", [Group(app.settings_model.model_fields)])
    settings = read_options(app.settings_model, parser.read([str(option) for option in options]))
    async with connected(app, settings) as end, Client(end, APPS) as client:
        yield client


@asynccontextmanager
async def show_app(
    client: Client,
    app: Path,
    call: tuple[str, dict[str, Any]],
    where: tuple[Page, Site],
    *,
    theme: str = "light",
    can: Mapping[str, Any] = CAN,
) -> AsyncIterator[Framed]:
    """Shows the page at `app` with the result of a call of a tool."""
    tool, arguments = call
    framed = Framed(client)
    result = await client.request("tools/call", {"name": tool, "arguments": arguments})
    context = {"theme": theme, "displayMode": "inline"}
    framed.host = await open_app(*where, app, answer=framed.answer, context=context, capabilities=dict(can))
    await framed.host.give(arguments, result)
    try:
        yield framed
    finally:
        await framed.host.page.goto("about:blank")
        await framed.give_up()
