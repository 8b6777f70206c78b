"""What answers at `/`: the workbench, which is one page that loads nothing else.

There is nothing of the servers in it, so whoever is let in by host and origin gets it without a token. It learns what
it shows by `/metrics` and by MCP, as any other client does, with the token that a person gives it.
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
"""What the page may talk to, and from where it may show: results bring images and sounds as data."""

_HEADERS = {
    # It is asked for each time, and sent where it is another one.
    "cache-control": "no-cache",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "vary": "accept-encoding",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


class Workbench:
    """Answers with the page."""

    def __init__(self) -> None:
        """Begins to put the page together, which is done when a browser has been started."""
        with_one = ThreadPoolExecutor(1, "workbench")
        self._page = with_one.submit(_Page, INDEX)
        with_one.shutdown(wait=False)

    async def answer(self, request: Request) -> Response:
        """The page, or that the browser has it already."""
        page = await asyncio.wrap_future(self._page)
        if page.etag in request.headers.get("if-none-match", "").replace(" ", "").split(","):
            return Response(None, 304, page.headers)
        if accepts_gzip(request.headers.get("accept-encoding")):
            return Response(page.gzipped, 200, {**page.headers, "content-encoding": "gzip"}, "text/html")
        return Response(page.html, 200, page.headers, "text/html")


class _Page:
    """The page as it is sent, put together of its parts."""

    def __init__(self, path: Path) -> None:
        page = assemble(path)
        self.html = page.html.encode()
        self.gzipped = compress(self.html, mtime=0)
        # Weak: it stands for both forms.
        self.etag = f'W/"{sha256(self.html).hexdigest()[:32]}"'
        self.headers = {
            **_HEADERS,
            "content-security-policy": f"{page.policy(connect=_CONNECT, images=_IMAGES)}; media-src {_MEDIA}",
            "etag": self.etag,
        }
