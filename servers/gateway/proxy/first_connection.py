"""The first connection to the server behind a bridge. If it fails, the program exits and reports the reason: most
likely the user has made a mistake, such as a wrong URL. If a later connection is lost, the bridge just reconnects.
"""

import logging
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from math import inf

import anyio

from shared.client.client import Client
from shared.client.options import ClientOptions
from shared.errors import McpError, PeerError
from shared.program.process import Failed

from ..bridge.connection import reason_of
from ..bridge.upstream import Connect

_ACCESS_DENIED = (401, 403)
_UNREACHED = re.compile(r"no connection to \S+: ")
_BRIDGE = logging.getLogger("shared.gateway.bridge.connection")


class FirstConnection:
    """Makes the bridge's connections to the server, and stores the result of the first attempt."""

    def __init__(self, name: str, connect: Connect, timeout: float, advice: str = "") -> None:
        """`name` is the server's name in messages, `timeout` the number of seconds for the first attempt, and
        `advice` the end of the message for an authorization error."""
        self._name = name
        self._connect = connect
        self._timeout = timeout
        self._advice = advice
        self._deadline = inf
        self._has_ended = anyio.Event()
        self._error: Exception | None = None

    @asynccontextmanager
    async def connect(self, options: ClientOptions) -> AsyncIterator[Client]:
        """Connect, and yield the client. Raises the same errors as connecting."""
        # Suppress what the bridge logs about the first attempt: the error of `wait` reports it in one line.
        _BRIDGE.addFilter(self._was_connected)
        self._deadline = min(self._deadline, anyio.current_time() + self._timeout)
        # A server that does not know the newest version may not answer the probe for it. Leave time to try an older
        # one.
        options = replace(options, probe_seconds=min(options.probe_seconds, self._timeout / 2))
        async with AsyncExitStack() as stack:
            try:
                client = await stack.enter_async_context(self._connect(options))
            except (OSError, ValueError, McpError) as error:
                self._end(error)
                raise
            self._end(None)
            yield client

    async def wait(self) -> None:
        """Wait for the connection. Raises Failed with the reason if the first attempt fails or takes too long."""
        with anyio.CancelScope(deadline=self._deadline):
            await self._has_ended.wait()
        if not self._has_ended.is_set():
            raise Failed(
                f"no connection to {self._name}: no response within {self._timeout:g} s; increase --timeout to wait "
                "longer"
            )
        error = self._error
        if error is not None:
            reason = _UNREACHED.sub("", str(error) or type(error).__name__).rstrip(".")
            if isinstance(error, TimeoutError):
                reason = "it accepts the connection, but does not answer"
            elif isinstance(error, OSError) and error.strerror:
                detail = reason_of(error)
                reason = f"{error.filename}: {detail}" if error.filename else detail
            if isinstance(error, PeerError) and error.code in _ACCESS_DENIED:
                reason += self._advice
            raise Failed(f"no connection to {self._name}: {reason}")

    def _was_connected(self, record: logging.LogRecord) -> bool:
        return self._has_ended.is_set() and self._error is None

    def _end(self, error: Exception | None) -> None:
        if not self._has_ended.is_set():
            self._error = error
            self._has_ended.set()
