"""A small site for the fetch server."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.pictures import PNG

PARAGRAPHS = [
    f"Paragraph number {number} tells of the weather, of the sea and of what the boats brought home."
    for number in range(300)
]
STORY = f"<title>A story</title><h1>A story</h1><p>{'</p><p>'.join(PARAGRAPHS)}</p>"


class Pages(BaseHTTPRequestHandler):
    """What stands where."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answers with the page of that path."""
        status, kind, body = {
            "/story": (200, "text/html; charset=utf-8", STORY.encode()),
            "/data": (200, "application/json", b'{"b":[1,2],"a":{"c":true}}'),
            "/pixel": (200, "image/png", PNG),
        }.get(self.path, (404, "text/html", b"<h1>Nothing here</h1>"))
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@contextmanager
def served(handler: Callable[..., BaseHTTPRequestHandler] = Pages, port: int = 0, **attributes: Any) -> Iterator[str]:
    """The URL of the site, or of another's `handler`, which is there until the end of the block. The `attributes` are
    those of the server."""
    server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    server.daemon_threads = True
    vars(server).update(attributes)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
