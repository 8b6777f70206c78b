"""The rows that the Python clients go through, and what a driver of one provides. Runs in the environment of a peer.

`drive_typescript.mjs` has the same rows once more.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from person import Person

SECONDS = 30.0
READ, WRITE = "filesystem:read", "filesystem:write"
CALLS = {
    "read": ("read_text_file", lambda file: {"path": file}),
    "write": ("write_file", lambda file: {"path": file, "content": "after\n"}),
}
"""What a row has the server do to the file."""


@dataclass(frozen=True)
class Task:
    """What a driver is told."""

    rows: list[str]
    url: str
    """Of the server."""
    document: str
    secret: str
    file: str
    tokens: dict[str, str]
    """Tokens that are refused: "ended", "other audience"; and "narrow", which allows to read."""


@dataclass
class Login:
    """How a connection logs in: as who, with which token to begin with, and with whose help."""

    url: str
    id: str | None = None
    """Of a client that is known already."""
    document: str | None = None
    secret: str | None = None
    """Of a program that needs nobody's help."""
    token: str | None = None
    bound: bool = False
    person: Person = field(default_factory=Person)


class Connection(Protocol):
    """A connected client."""

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        """The text of the result; raises where it is an error."""

    async def age(self) -> str:
        """Has the client take its access token for one that has expired; gives that token."""

    async def token(self) -> str:
        """The access token that it has."""

    async def kind(self) -> str:
        """The type of it; asked of those alone that can bind one."""


class Peer(Protocol):
    """A client to be driven."""

    def connect(self, login: Login) -> AbstractAsyncContextManager[Connection]: ...


def same(found: Any, wanted: Any) -> None:
    """Raises where they differ."""
    if found != wanted:
        raise AssertionError(f"{found!r} is not {wanted!r}")


async def do(connection: Connection, what: str, task: Task) -> str:
    """Has the server read the file, or write it."""
    name, arguments = CALLS[what]
    return await connection.call(name, arguments(task.file))


async def _logs_in(peer: Peer, task: Task, login: Login, asked: int = 1) -> None:
    async with peer.connect(login) as connection:
        same(await do(connection, "read", task), "before\n")
        if not await connection.token():
            raise AssertionError("it came in without a token")
        if login.bound:
            same(await connection.kind(), "dpop")
    same(login.person.asked, asked)


async def _registers(peer: Peer, task: Task) -> None:
    await _logs_in(peer, task, Login(task.url))


async def _has_a_document(peer: Peer, task: Task) -> None:
    await _logs_in(peer, task, Login(task.url, document=task.document))


async def _is_known(peer: Peer, task: Task) -> None:
    await _logs_in(peer, task, Login(task.url, id="desk"))


async def _is_a_program(peer: Peer, task: Task) -> None:
    await _logs_in(peer, task, Login(task.url, id="robot", secret=task.secret), asked=0)


async def _is_bound(peer: Peer, task: Task) -> None:
    await _logs_in(peer, task, Login(task.url, id="desk", bound=True))


async def _steps_up(peer: Peer, task: Task) -> None:
    login = Login(task.url, id="desk")
    async with peer.connect(login) as connection:
        same(await do(connection, "read", task), "before\n")
        await do(connection, "write", task)
        same(await do(connection, "read", task), "after\n")
    same(login.person.asked, 2)


async def _refreshes(peer: Peer, task: Task) -> None:
    login = Login(task.url, id="desk")
    async with peer.connect(login) as connection:
        await do(connection, "read", task)
        old = await connection.age()
        same(await do(connection, "read", task), "before\n")
        if await connection.token() == old:
            raise AssertionError("the token is the old one")
    same(login.person.asked, 1)


def _refused(token: str, what: str = "read") -> Callable[[Peer, Task], Awaitable[None]]:
    async def row(peer: Peer, task: Task) -> None:
        login = Login(task.url, token=task.tokens[token], person=Person(willing=False))
        await _turned_away(peer, task, login, what)

    return row


async def _is_denied(peer: Peer, task: Task) -> None:
    await _turned_away(peer, task, Login(task.url, id="unwelcome-desk"), "read")


async def _turned_away(peer: Peer, task: Task, login: Login, what: str) -> None:
    """Nothing comes of it, and the reason is that only the user could have helped."""
    said = None
    try:
        async with peer.connect(login) as connection:
            said = await do(connection, what, task)
    except Exception as error:  # noqa: BLE001 - each client has an error of its own
        same(login.person.asked, 1 if said is None else f"1, and no {error!r}")
    else:
        raise AssertionError(f"it was let in, and got {said!r}")
    same(Path(task.file).read_text(), "before\n")


Row = Callable[[Peer, Task], Awaitable[None]]

ROWS: dict[str, Row] = {
    "registers": _registers,
    "has a document": _has_a_document,
    "is known": _is_known,
    "is a program": _is_a_program,
    "is bound": _is_bound,
    "steps up": _steps_up,
    "refreshes": _refreshes,
    "ended": _refused("ended"),
    "other audience": _refused("other audience"),
    "too narrow": _refused("narrow", "write"),
    "denied": _is_denied,
}


async def _outcome(row: Row, peer: Peer, task: Task) -> str:
    Path(task.file).write_text("before\n")
    try:
        async with asyncio.timeout(SECONDS):
            await row(peer, task)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the outcome
        return "; ".join(f"{type(one).__name__}: {one}" for one in _causes(error))
    return "ok"


def _causes(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [cause for one in error.exceptions for cause in _causes(one)]
    return [error]


def drive(peer: Peer) -> None:
    """Goes through the rows that the first argument names, and prints what became of each."""
    task = Task(**json.loads(sys.argv[1]))

    async def all_rows() -> dict[str, str]:
        return {name: await _outcome(ROWS[name], peer, task) for name in task.rows}

    print(json.dumps(asyncio.run(all_rows())))
