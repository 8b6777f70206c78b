"""Detects a server that has died without closing its connection, by pinging it after a silence.

Calls have their own time limits. A client that only listens would wait forever on a connection that broke without a
sign, so the server is pinged while there are subscriptions and no pending calls.
"""

import anyio

from ...errors import PeerError
from .connection import Connection


async def monitor(connection: Connection, interval: float | None) -> None:
    """Wait until `connection` is lost. If nothing arrives for `interval` seconds, the server is pinged; if it does
    not answer within as many seconds, the connection is lost. If `interval` is None, there are no pings."""
    while not connection.gone.is_set():
        silent_seconds = anyio.current_time() - connection.last_received
        # A pending call has its own time limit, and a server at work may be too busy for pings.
        if interval is None or silent_seconds < interval or connection.is_busy or not connection.subscriptions:
            # Wait until the silence has lasted for `interval`. If it has, but a ping is not needed now, check again
            # after `interval`.
            remaining = (
                None if interval is None else interval - silent_seconds if silent_seconds < interval else interval
            )
            with anyio.move_on_after(remaining):
                await connection.gone.wait()
        else:
            method = "server/discover" if connection.session.stateless else "ping"
            try:
                await connection.call(method, {}, timeout_seconds=interval)
            except PeerError:
                pass  # it is alive
            except (TimeoutError, ConnectionError):
                connection.lose(f"the server did not respond within {interval:g} s")
