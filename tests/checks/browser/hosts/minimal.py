"""A minimal host of MCP Apps in a page: the official TypeScript client, and the app-bridge of ext-apps 2.0.4.

Its page is of one origin, and the sandbox that holds a view of another, as the specification asks of web hosts.
"""

import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from email.message import Message
from pathlib import Path
from typing import Any

from playwright.async_api import FrameLocator, Page

from tests.checks.browser.hosts.peers import FOLDER, MODULES, require_node
from tests.web_site import Reply, answered

__all__ = ["MinimalHost", "serve_host"]

RESTRICTIVE = (
    "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; media-src 'self' data:; connect-src 'none'"
)
"""What the specification has hosts allow a view that names no domains, as ours don't."""
BUNDLE_SECONDS = 60


class MinimalHost:
    """The host in a page, connected to one server."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self._address = address

    async def connect(self, url: str, *, apps: bool = True, token: str | None = None) -> None:
        """Loads the host, and connects its client, which declares that it shows apps, or does not."""
        await self.page.goto(self._address)
        await self.page.wait_for_selector("html[data-ready]")
        await self.page.evaluate(
            "([url, options]) => host.connect(url, options)", [url, {"apps": apps, "token": token}]
        )

    async def tools(self) -> dict[str, Any]:
        """Returns the tools of the server by name, as the host received them."""
        return {tool["name"]: tool for tool in await self.page.evaluate("() => host.tools()")}

    async def call(self, tool: str, arguments: dict[str, Any]) -> Any:
        """Calls a tool without its view, as the model does."""
        return await self.page.evaluate("([tool, args]) => host.call(tool, args)", [tool, arguments])

    async def open(self, tool: str, arguments: dict[str, Any], *, theme: str = "light") -> dict[str, Any]:
        """Calls a tool, with its view up; the `uri`, `meta` and `size` of the page, and the `result`."""
        shown = "([tool, args, options]) => host.open(tool, args, options)"
        opened: dict[str, Any] = await self.page.evaluate(shown, [tool, arguments, {"theme": theme}])
        return opened

    @property
    def view(self) -> FrameLocator:
        """Returns the document of the view."""
        return self.page.frame_locator("iframe").frame_locator("iframe")

    async def asked(self, method: str) -> list[Any]:
        """Returns the parameters of all requests and notifications of that method from the view."""
        asked = await self.page.evaluate("() => host.asked")
        return [params for name, params in asked if name == method]

    async def set_theme(self, theme: str) -> None:
        """Changes the theme and the colours while a view is shown."""
        await self.page.evaluate("theme => host.setTheme(theme)", theme)

    async def cancel(self, reason: str) -> None:
        """Notifies the view that its call was cancelled."""
        await self.page.evaluate("reason => host.cancel(reason)", reason)

    async def close_view(self) -> None:
        """Removes the view, after its answer to the teardown."""
        await self.page.evaluate("() => host.close()")


@contextmanager
def serve_host(folder: Path) -> Iterator[str]:
    """Serves the page of the host until the end of the block; yields its address. `folder` receives its script."""
    _bundle(folder)
    pages = {
        "/": (FOLDER / "host.html", "text/html"),
        "/host.js": (folder / "host.js", "text/javascript"),
        "/favicon.ico": (Path(__file__).parents[4] / "servers" / "everything" / "icon.png", "image/png"),
    }
    with ExitStack() as stack:
        host = stack.enter_context(_serve(pages, None))
        sandbox = stack.enter_context(_serve({"/": (FOLDER / "sandbox.html", "text/html")}, RESTRICTIVE))
        yield f"{host}/?sandbox={sandbox}/"


def _bundle(folder: Path) -> None:
    program = MODULES / "esbuild" / "bin" / "esbuild"
    options = ["--bundle", "--format=esm", "--platform=browser", "--log-level=warning", f"--outdir={folder}"]
    command = [require_node(), program, FOLDER / "host.mjs", *options]
    subprocess.run(command, check=True, timeout=BUNDLE_SECONDS)


def _serve(files: dict[str, tuple[Path, str]], policy: str | None) -> AbstractContextManager[str]:
    headers = {} if policy is None else {"Content-Security-Policy": policy}

    def answer(path: str, _body: bytes, _headers: Message) -> Reply:
        file, kind = files[path.partition("?")[0]]
        return Reply(file.read_bytes(), f"{kind}; charset=utf-8", headers=headers)

    return answered(answer)
