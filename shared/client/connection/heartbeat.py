"""Detects a server that has died without closing its connection, by a ping after a silence.

Calls have their own time limits. A client that only listens would wait forever on a silently broken connection, so
the server is pinged while there are subscriptions and no pending calls.
"""

import anyio

from ...errors import PeerError
from .connection import Connection


async def monitor(connection: Connection, seconds: float | None) -> None:
    """Wait until `connection` is lost. If nothing arrives for `seconds`, the server is pinged; if it does not answer
    within `seconds` either, the connection is lost. With None there are no pings."""
    while not connection.gone.is_set():
        silent_seconds = anyio.current_time() - connection.last_received
        # A pending call has its own time limit, and a server at work may be too busy for pings.
        if seconds is None or silent_seconds < seconds or connection.is_busy or not connection.subscriptions:
            # Until silence has lasted `seconds`; if it does not matter yet, for another `seconds`.
            remaining = None if seconds is None else seconds - silent_seconds if silent_seconds < seconds else seconds
            with anyio.move_on_after(remaining):
                await connection.gone.wait()
        else:
            method = "server/discover" if connection.session.stateless else "ping"
            try:
                await connection.call(method, {}, seconds=seconds)
            except PeerError:
                pass  # it is alive
            except (TimeoutError, ConnectionError):
                connection.lose(f"the server did not respond within {seconds:g} s")
