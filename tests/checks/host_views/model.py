"""A model that does as it was told: it makes the calls of a list, and keeps what the host gives it for each."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from tests.checks.host_views.dialects import Call, Dialect, Json, Reply

NOTHING = Reply("application/json", b"{}")
CHARACTERS_A_TOKEN = 2
"""As few as code and numbers have."""


class Model:
    """What the model does in one conversation."""

    def __init__(self, dialect: Dialect, calls: Sequence[Call]) -> None:
        self._dialect = dialect
        self._calls = calls
        self.url = ""
        self.results: list[Any] = []
        """What the host gave for each call."""

    def answer(self, request: Json) -> Reply:
        """The answer to a request of the host."""
        results = self._dialect.results(request)
        if results is None:
            # Beside the conversation, Claude Code asks how many tokens a long result has.
            tokens = len(json.dumps(request)) // CHARACTERS_A_TOKEN
            return Reply("application/json", json.dumps({"input_tokens": tokens}).encode())
        self.results = results
        call = self._calls[len(results)] if len(results) < len(self._calls) else None
        return self._dialect.reply(call, len(results))


@contextmanager
def serving(dialect: Dialect, calls: Sequence[Call]) -> Iterator[Model]:
    """A model at a URL on loopback."""
    model = Model(dialect, calls)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"] or 0))
            self._send(model.answer(json.loads(body or b"{}")))

        def do_GET(self) -> None:
            self._send(NOTHING)

        def do_HEAD(self) -> None:
            self._send(Reply(NOTHING.media_type, b""))

        def _send(self, reply: Reply) -> None:
            self.send_response(200)
            self.send_header("content-type", reply.media_type)
            self.send_header("content-length", str(len(reply.body)))
            self.end_headers()
            self.wfile.write(reply.body)

        def log_message(self, format: str, *words: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    model.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield model
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
