"""A model that follows a script: a generator that yields calls, and receives the text that its host shows."""

import json
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from email.message import Message

from tests.checks.host_views.dialects import Call, Dialect, Json
from tests.web_site import Reply, answered

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

    def answer(self, path: str, body: bytes, _headers: Message) -> Reply:
        """Return the answer to a request of the host."""
        if not body:
            return Reply(b"{}")
        request: Json = json.loads(body)
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
    with answered(model.answer) as model.url:
        yield model
