"""A minimal host of MCP Apps in a page: a frame with an app, and the other side of its messages.

The frame has the sandbox and the content security policy that the specification names as the least that a host does.
What the app sends is kept, in order; what it asks is answered by functions of the test.
"""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from playwright.async_api import FrameLocator, Page

from servers.common.web import pages
from tests.checks.browser.site import Site

__all__ = ["AppHost", "open_app"]

POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; media-src 'self' data:; connect-src 'none'"
)
"""The default of the specification, 2026-01-26."""
CAPABILITIES: dict[str, Any] = {"serverTools": {}, "serverResources": {}, "openLinks": {}, "downloadFile": {}}
PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>A host</title>
<meta name="viewport" content="width=device-width"></head>
<body style="margin: 0"><iframe title="App" sandbox="allow-scripts" src="%(app)s"
 style="border: 0; width: 100vw; height: %(height)dpx"></iframe><script>
const frame = document.querySelector("iframe");
const initialized = %(initialized)s;
globalThis.received = [];
globalThis.send = (message) => frame.contentWindow.postMessage({ jsonrpc: "2.0", ...message }, "*");
addEventListener("message", async ({ source, data }) => {
  if (source !== frame.contentWindow) return;
  received.push(data);
  if (data.method === "ui/notifications/size-changed" && %(grows)s) frame.style.height = `${data.params.height}px`;
  if (data.method === undefined || data.id === undefined) return;
  if (data.method === "ui/initialize") return send({ id: data.id, result: initialized });
  const answer = await answerApp(data.method, data.params);
  if (answer !== null) send({ id: data.id, ...answer });
});
</script></body></html>"""

Answer = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any] | None]]


class AppHost:
    """A page with an app in it."""

    def __init__(self, page: Page) -> None:
        self.page = page

    @property
    def app(self) -> FrameLocator:
        """Returns the document of the app."""
        return self.page.frame_locator("iframe")

    async def send(self, method: str, params: dict[str, Any], *, request: str | None = None) -> None:
        """Sends the app a notification, or with an id a request."""
        message = {"method": method, "params": params, **({} if request is None else {"id": request})}
        await self.page.evaluate("message => send(message)", message)

    async def give(self, arguments: dict[str, Any], result: dict[str, Any]) -> None:
        """Sends the app the arguments and the result of its tool."""
        await self.send("ui/notifications/tool-input", {"arguments": arguments})
        await self.send("ui/notifications/tool-result", result)

    async def received(self, **wanted: Any) -> dict[str, Any]:
        """Waits for a message of the app with these members; returns the last."""
        matches = "wanted => received.findLast(m => Object.keys(wanted).every(k => m[k] === wanted[k]))"
        found = await self.page.wait_for_function(matches, arg=wanted)
        message: dict[str, Any] = await found.json_value()
        return message

    async def all_received(self, method: str) -> list[dict[str, Any]]:
        """Returns the params of all messages of the app with that method."""
        found: list[dict[str, Any]] = await self.page.evaluate(
            "method => received.filter(m => m.method === method).map(m => m.params)", method
        )
        return found


async def open_app(
    page: Page,
    site: Site,
    app: Path | str,
    *,
    answer: Answer | None = None,
    context: dict[str, Any] | None = None,
    capabilities: dict[str, Any] = CAPABILITIES,
    height: int = 700,
    grows: bool = True,
) -> AppHost:
    """Shows an app, which is a page of ours or its HTML, in a host; gives it when both have shaken hands. `answer`
    gives what is answered to a method and its params, `{"result": ...}` or `{"error": ...}`; None for never."""
    html = app if isinstance(app, str) else pages.assemble(app).html
    app_path, host_path = f"/app{len(site.pages)}", f"/host{len(site.pages)}"
    initialized = {
        "protocolVersion": "2026-01-26",
        "hostInfo": {"name": "test-host", "version": "1"},
        "hostCapabilities": capabilities,
        "hostContext": context or {},
    }
    values = {"app": app_path, "height": height, "initialized": json.dumps(initialized), "grows": json.dumps(grows)}
    site.pages[app_path] = html.encode(), POLICY
    site.pages[host_path] = (PAGE % values).encode(), ""
    await page.expose_function("answerApp", answer or _answer_nothing)
    await page.goto(site.origin + host_path)
    host = AppHost(page)
    await host.received(method="ui/notifications/initialized")
    return host


async def _answer_nothing(method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"error": {"code": -32601, "message": f"this host does not do {method}"}}
