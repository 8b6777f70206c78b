"""The server behind a bridge: what it is called, and how a session with it is opened."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from shared.client.client import Client
from shared.client.connection.opening import OPENING_SECONDS
from shared.client.options import ClientOptions

Connect = Callable[[ClientOptions], AbstractAsyncContextManager[Client]]
"""Opens a session with the server, as `partial(connect, target)` does: with these options, but for what concerns the
way there. Raises what `shared.client.connect` does."""


MAX_PROCESSES = 64
"""Processes of one server, unless the operator says otherwise: each takes tens of megabytes."""


@dataclass(frozen=True, slots=True)
class Upstream:
    """A server of any version, over any transport."""

    name: str
    """What clients are told where something is wrong with it."""
    connect: Connect
    shared: bool = False
    """Whether all clients share one session where the server has sessions; else each client has its own."""
    processes: int | None = None
    """How many sessions clients may have that have one each, where each is a process; one client has half of them.
    None where a session is none."""
    opening_seconds: float = OPENING_SECONDS
    """How long the first attempt to reach it is waited for, and whoever needs a session of their own waits."""
