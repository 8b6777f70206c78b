"""A model that follows a script: a generator that yields calls, and receives the text that its host shows."""

import json
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from tests.checks.host_views.dialects import Call, Dialect, Json, Reply

NOTHING = Reply("application/json", b"{}")
CHARACTERS_A_TOKEN = 2
"""As few as code and numbers have."""

Script = Generator[Call, str, None]


class Model:
    """The model of one conversation."""

    def __init__(self, dialect: Dialect, script: Script) -> None:
        self._dialect = dialect
        self._script = script
        self._received: set[str] = set()
        self._call: Call | None = next(script)
        self.url = ""

    @property
    def is_finished(self) -> bool:
        """True if the host has shown the results of all calls."""
        return self._call is None

    def answer(self, path: str, request: Json) -> Reply:
        """Return the answer to a request of the host."""
        if "count" in path:
            return self._dialect.count(len(json.dumps(request)) // CHARACTERS_A_TOKEN)
        results = self._dialect.results(request)
        for key, result in results.items():
            if key not in self._received:
                self._received.add(key)
                self._call = self._go_on(self._dialect.text(result))
        if not self._dialect.offers_tools(request):
            return self._dialect.aside(request)
        return self._dialect.reply(self._call, len(self._received))

    def _go_on(self, text: str) -> Call | None:
        try:
            return self._script.send(text)
        except StopIteration:
            return None


@contextmanager
def serving(dialect: Dialect, script: Script) -> Iterator[Model]:
    """A model at a URL on loopback."""
    model = Model(dialect, script)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"] or 0))
            self._send(model.answer(self.path, json.loads(body or b"{}")))

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
