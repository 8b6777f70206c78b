"""A small site for the fetch server."""

from contextlib import AbstractContextManager
from email.message import Message

from tests.pictures import PNG
from tests.web_site import Reply, answered

PARAGRAPHS = [
    f"Paragraph number {number} tells of the weather, of the sea and of what the boats brought home."
    for number in range(300)
]
STORY = f"<title>A story</title><h1>A story</h1><p>{'</p><p>'.join(PARAGRAPHS)}</p>"


PAGES = {
    "/story": Reply(STORY.encode(), "text/html; charset=utf-8"),
    "/data": Reply(b'{"b":[1,2],"a":{"c":true}}'),
    "/pixel": Reply(PNG, "image/png"),
}


def served() -> AbstractContextManager[str]:
    """The URL of the site, which is there until the end of the block."""
    return answered(_page)


def _page(path: str, _body: bytes, _headers: Message) -> Reply:
    return PAGES.get(path, Reply(b"<h1>Nothing here</h1>", "text/html", 404))
