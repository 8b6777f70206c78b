"""Serves the workbench, at `/`: a single page that loads nothing else.

The page contains no data of the servers, so each client with an allowed host and origin gets it without a token. It
fetches data from `/metrics` and over MCP, like any other client, with the token that the user enters.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from gzip import compress
from hashlib import sha256
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from servers.common.web.pages import assemble
from shared.protocol.http.rules import accepts_gzip

INDEX = Path(__file__).with_name("index.html")

_CONNECT, _IMAGES, _MEDIA = "'self'", "data: blob: 'self'", "data: blob:"
"""The parts of the content security policy for connections, images and media. Results contain images and sounds as
`data:` URLs."""

_HEADERS = {
    # The browser asks each time whether the page has changed.
    "cache-control": "no-cache",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "vary": "accept-encoding",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


class Workbench:
    """Serves the page."""

    def __init__(self) -> None:
        """Start to assemble the page in a thread. It is ready before a browser has started."""
        executor = ThreadPoolExecutor(1, "workbench")
        self._page = executor.submit(_Page, INDEX)
        executor.shutdown(wait=False)

    async def answer(self, request: Request) -> Response:
        """Return the page, or the status 304 if the browser's copy is current."""
        page = await asyncio.wrap_future(self._page)
        if page.etag in request.headers.get("if-none-match", "").replace(" ", "").split(","):
            return Response(None, 304, page.headers)
        if accepts_gzip(request.headers.get("accept-encoding")):
            return Response(page.gzipped, 200, {**page.headers, "content-encoding": "gzip"}, "text/html")
        return Response(page.html, 200, page.headers, "text/html")


class _Page:
    """The assembled page: plain, compressed, and the headers for both."""

    def __init__(self, path: Path) -> None:
        page = assemble(path)
        self.html = page.html.encode()
        self.gzipped = compress(self.html, mtime=0)
        # A weak etag, since it identifies both the plain and the compressed form.
        self.etag = f'W/"{sha256(self.html).hexdigest()[:32]}"'
        self.headers = {
            **_HEADERS,
            "content-security-policy": f"{page.policy(connect=_CONNECT, images=_IMAGES)}; media-src {_MEDIA}",
            "etag": self.etag,
        }
