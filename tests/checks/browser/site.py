"""A web server on loopback for single pages, each with the strictest policy that it works with."""

from collections.abc import Iterator
from contextlib import contextmanager
from email.message import Message

from servers.common.web.pages import Page
from tests.web_site import Reply, answered

__all__ = ["Site", "serve_pages"]


class Site:
    """Pages by path, and the address of their server."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.pages: dict[str, tuple[bytes, str]] = {}

    def add(self, page: Page, *, connect: str = "'none'") -> str:
        """Adds a page; returns its URL."""
        path = f"/{len(self.pages)}"
        self.pages[path] = page.html.encode(), page.policy(connect=connect)
        return self.origin + path

    def answer(self, path: str, _body: bytes, _headers: Message) -> Reply:
        """Returns a page, or nothing for the icon that a browser asks for."""
        body, policy = self.pages.get(path, (b"", "default-src 'none'"))
        headers = {"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff"}
        return Reply(body, "text/html; charset=utf-8", 200 if body else 204, headers)


@contextmanager
def serve_pages() -> Iterator[Site]:
    """Serves a site, empty at first, until the end of the block."""
    site = Site("")
    with answered(site.answer) as site.origin:
        yield site
