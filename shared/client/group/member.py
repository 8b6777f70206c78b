"""One server of a group. Its client runs in a separate task, so that a failure does not affect the other servers.

connecting ──▶ ready ──▶ failed ──▶ (after a pause, with `retry`) ──▶ connecting
     └──▶ failed              └──▶ closed
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import anyio

from ...concurrency import first_error, wait_for_first
from ..client import Client
from ..connect import connect
from ..connection.restart import Pauses
from ..options import ClientOptions

ServerState = Literal["connecting", "ready", "failed", "closed"]


@dataclass(frozen=True, slots=True)
class GroupServer:
    """How to connect to a server, with its own options, whose handlers receive only the messages of this server."""

    connect: Callable[[ClientOptions], AbstractAsyncContextManager[Client]]
    options: ClientOptions = field(default_factory=ClientOptions)


def group_server(
    target: str | Sequence[str], options: ClientOptions | None = None, **connect_options: Any
) -> GroupServer:
    """Return a `GroupServer` for the server at a URL, or for the server that a command starts. The `connect_options`
    are passed to `connect`."""
    return GroupServer(partial(connect, target, **connect_options), options or ClientOptions())


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """The status of a server of a group."""

    name: str
    state: ServerState
    error: Exception | None = None
    """The error of the last failure, also while the client connects to the server again."""

    @property
    def reason(self) -> str:
        """The text of the error; empty if there is none."""
        return "" if self.error is None else str(self.error) or type(self.error).__name__


class Member:
    """A server in a group. `on_status` is called with each new status."""

    def __init__(
        self, name: str, server: GroupServer, options: ClientOptions, on_status: Callable[[ServerStatus], None]
    ) -> None:
        self.status = ServerStatus(name, "connecting")
        self.settled = anyio.Event()
        """Set when the server is first ready, failed or closed."""
        self.closed = anyio.Event()
        """Set when the server is completely closed."""
        self.names: dict[str, tuple[str, ...]] = {}
        """The names in the server's last lists, by capability."""
        self._connect = partial(server.connect, options)
        self._on_status = on_status
        self._client: Client | None = None
        self._closing = anyio.Event()
        self._scope = anyio.CancelScope()

    @property
    def client(self) -> Client:
        """The client of the server. Raises ConnectionError if the server is not ready."""
        if self._client is None:
            status = self.status
            raise ConnectionError(f"{status.name} is {status.state}{status.reason and ': ' + status.reason}")
        return self._client

    async def run(self, *, retry: bool) -> None:
        """Run a client of the server until `begin_close` is called. With `retry`, it reconnects after a failure."""
        try:
            with self._scope:
                await self._run_repeatedly(retry)
        finally:  # the group always waits for `closed`
            self.closed.set()
            self._set_status("closed")

    def begin_close(self) -> None:
        """Close the client, or cancel it if it is not ready."""
        self._closing.set()
        if self._client is None:
            self._scope.cancel()

    def cancel(self) -> None:
        """Cancel everything, including the closing."""
        self._scope.cancel()

    async def _run_repeatedly(self, retry: bool) -> None:
        pauses = Pauses()
        while not self._closing.is_set():
            pauses.record_start(anyio.current_time())
            self._set_status("connecting", self.status.error)
            try:
                async with self._connect() as self._client:
                    self._set_status("ready")
                    await wait_for_first(self._closing.wait, self._client.ended)
                if not self._closing.is_set():
                    raise ConnectionError("the server ended the connection")
            except Exception as error:
                if not self._closing.is_set():
                    failure = first_error(error)
                    self._set_status("failed", failure if isinstance(failure, Exception) else error)
            finally:
                self._client = None
            with anyio.move_on_after(pauses.remaining(anyio.current_time()) if retry else None):
                await self._closing.wait()

    def _set_status(self, state: ServerState, error: Exception | None = None) -> None:
        self.status = ServerStatus(self.status.name, state, error)
        if state != "connecting":
            self.settled.set()
        self._on_status(self.status)
