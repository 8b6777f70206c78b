"""The server behind a bridge: its name, and how to open a session with it."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from shared.client.client import Client
from shared.client.connection.opening import OPENING_SECONDS
from shared.client.options import ClientOptions

Connect = Callable[[ClientOptions], AbstractAsyncContextManager[Client]]
"""Opens a session with the server, as `partial(connect, target)` does. It may replace the options that concern the
transport. Raises the same errors as `shared.client.connect`."""


MAX_PROCESSES = 64
"""Default maximum number of processes of one server: each takes tens of megabytes."""


@dataclass(frozen=True, slots=True)
class Upstream:
    """A server of any version, over any transport."""

    name: str
    """The name of the server in errors for clients."""
    connect: Connect
    shares_session: bool = False
    """True if all clients share one session on a server with sessions; otherwise, each has its own."""
    max_processes: int | None = None
    """Maximum number of dedicated sessions if each is a process; one client gets at most half of them. None if a
    session is not a process."""
    opening_seconds: float = OPENING_SECONDS
    """The time limit, in seconds, for the first attempt to reach the server, and for opening a session."""
