"""What a driver of a Python peer has to provide, and what it is given. Runs in the environment of the peer.

Results and notifications have the form that they have on the wire, so that the rows are the same for all peers.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

SECONDS = 60.0
FIELDS = {
    "city": "Oslo",
    "nights": 3,
    "season": "winter",
    "name": "Ada",
    "age": 36,
    "color": "green",
    "score": 1.5,
    "status": "inactive",
    "verified": False,
    "untitledSingle": "option2",
    "titledSingle": "value2",
    "legacyEnum": "opt2",
    "untitledMulti": ["option1", "option3"],
    "titledMulti": ["value1", "value3"],
    "confirm": True,
}
"""What the user fills into a form, by the name of the field."""

LETTERS = {
    "tools": "notifications/tools/list_changed",
    "prompts": "notifications/prompts/list_changed",
    "resources": "notifications/resources/list_changed",
    "uri": "notifications/resources/updated",
}

Progress = Callable[[float, float | None, str | None], Awaitable[None]]


@dataclass
class Task:
    """What a driver is told to do."""

    era: str
    version: str
    transport: str
    servers: dict[str, dict[str, Any]]
    folder: Path
    site: str
    """The URL of a web site."""
    key: str
    errors: str

    @classmethod
    def read(cls) -> "Task":
        """The task in the first argument."""
        given = json.loads(sys.argv[1])
        return cls(**{**given, "folder": Path(given["folder"])})

    @property
    def modern(self) -> bool:
        """Whether there is no handshake."""
        return self.era != "legacy"


@dataclass
class Ears:
    """What a connection has been told outside of results."""

    letters: "asyncio.Queue[dict[str, Any]]" = field(default_factory=asyncio.Queue)
    logs: list[dict[str, Any]] = field(default_factory=list)

    async def next(self, method: str) -> dict[str, Any]:
        """The next notification with that method; others are dropped."""
        while True:
            letter = await self.letters.get()
            if letter["method"] == method:
                return letter.get("params") or {}


class Connection(Protocol):
    """A connected client; every result is what is on the wire, without what is null."""

    ears: Ears

    def opened(self) -> dict[str, Any]:
        """`version` and `name`: the version settled on, and the server's name or None where it is not told."""

    async def all(self, kind: str) -> list[dict[str, Any]]:
        """All pages of "tools", "prompts", "resources" or "resourceTemplates"."""

    async def call(
        self, name: str, arguments: dict[str, Any] | None = None, progress: Progress | None = None
    ) -> dict[str, Any]:
        """The result, with `isError` where it is one."""

    async def cancelled(self, name: str, arguments: dict[str, Any]) -> None:
        """Calls, waits for the first report of progress, and cancels the call."""

    async def read(self, uri: str) -> dict[str, Any]: ...

    async def prompt(self, name: str, arguments: dict[str, str] | None = None) -> dict[str, Any]: ...

    async def complete(self, reference: dict[str, str], name: str, value: str) -> list[str]: ...

    async def ping(self) -> None: ...

    async def from_warning(self) -> bool:
        """Asks for log messages from the level "warning" on; whether the peer can, else it gets all of them."""

    def listening(self, **wanted: Any) -> AbstractAsyncContextManager[Callable[[], Awaitable[dict[str, Any]]]]:
        """Hears of one thing: `tools=True`, `prompts=True`, `resources=True` or `uri="..."`.

        Gives a function that waits for the next letter about it.
        """


class Peer(Protocol):
    """A client to be driven."""

    def connect(self, server: str, token: str | None = None) -> AbstractAsyncContextManager[Connection]: ...


def fill_in(params: dict[str, Any]) -> dict[str, Any]:
    """What the user says to an elicitation, in the form of the wire."""
    if params.get("mode") == "url":
        return {"action": "accept"}
    return {"action": "accept", "content": {name: FIELDS[name] for name in params["requestedSchema"]["properties"]}}


SAMPLE = {"role": "assistant", "model": "parrot", "content": {"type": "text", "text": "lake"}}
ROOTS = {"roots": [{"uri": "file:///home", "name": "home"}, {"uri": "file:///tmp", "name": "tmp"}]}


@asynccontextmanager
async def by_ears(ears: Ears, wanted: dict[str, Any]) -> AsyncIterator[Callable[[], Awaitable[dict[str, Any]]]]:
    """What `listening` gives where letters come by themselves."""
    (kind,) = wanted
    while not ears.letters.empty():
        ears.letters.get_nowait()
    yield lambda: ears.next(LETTERS[kind])
