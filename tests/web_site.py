"""Web sites on loopback, each in a thread."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from email.message import Message
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple


class Reply(NamedTuple):
    """A response."""

    body: bytes
    media_type: str = "application/json"
    status: int = 200
    headers: Mapping[str, str] = {}


Answer = Callable[[str, bytes, Message], Reply]
"""The response to a path, a body and headers, whatever the method."""


@contextmanager
def served(handler: Callable[..., BaseHTTPRequestHandler], port: int = 0) -> Iterator[str]:
    """Serves a site until the end of the block; yields its URL."""
    server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def answered(answer: Answer) -> Iterator[str]:
    """Serves a site whose responses come from a function; yields its URL."""

    class Answers(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            sent = self.rfile.read(int(self.headers["Content-Length"] or 0))
            body, media_type, status, headers = answer(self.path, sent, self.headers)
            self.send_response(status)
            for name, value in {"Content-Type": media_type, "Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_POST = do_HEAD = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Logs nothing."""

    with served(Answers) as url:
        yield url


@contextmanager
def serve_site(folder: Path, port: int = 0) -> Iterator[str]:
    """Serves the files of `folder`; yields the URL."""

    class Files(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Logs nothing."""

    with served(partial(Files, directory=str(folder)), port) as url:
        yield url
