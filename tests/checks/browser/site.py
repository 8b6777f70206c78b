"""A web server on loopback for pages that a test shows alone, each under the strictest policy it works with."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler

from servers.common.web.pages import Page
from tests.checks.interop.pages import served

__all__ = ["Site", "serve_pages"]


class Site:
    """Pages by their paths, and where they are served."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.pages: dict[str, tuple[bytes, str]] = {}

    def add(self, page: Page, *, connect: str = "'none'") -> str:
        """Serves a page from now on; its URL."""
        path = f"/{len(self.pages)}"
        self.pages[path] = page.html.encode(), page.policy(connect=connect)
        return self.origin + path


@contextmanager
def serve_pages() -> Iterator[Site]:
    """A site without pages yet, which is there until the end of the block."""
    site = Site("")
    with served(_Answers, site=site) as site.origin:
        yield site


class _Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body, policy = self.server.site.pages.get(self.path, (b"", "default-src 'none'"))
        self.send_response(200 if body else 204)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Security-Policy", policy)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""
