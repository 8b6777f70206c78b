"""Notices a server that is dead without having said so: it is asked for a sign of life where it has been silent.

Calls have their own time limits. Who only listens would wait for ever on a connection that broke without a word, so
while there are subscriptions, and nothing else is under way, silence is not taken for peace.
"""

import anyio

from ...errors import PeerError
from .connection import Connection


async def watch_over(connection: Connection, seconds: float | None) -> None:
    """Waits until `connection` is lost. One on which nothing came for `seconds`, and on which a ping is then not
    answered in as long, is lost; None asks for nothing."""
    while not connection.gone.is_set():
        silent = anyio.current_time() - connection.heard
        # While an answer is due its own time limit sees to it, and a server that works may be too busy for pings.
        if seconds is None or silent < seconds or connection.busy or not connection.subscriptions:
            # Until silence has lasted that long; where nobody cares about it yet, once more so long.
            left = None if seconds is None else seconds - silent if silent < seconds else seconds
            with anyio.move_on_after(left):
                await connection.gone.wait()
        else:
            method = "server/discover" if connection.session.stateless else "ping"
            try:
                await connection.call(method, {}, seconds=seconds)
            except PeerError:
                pass  # it lives
            except (TimeoutError, ConnectionError):
                connection.lose(f"the server gave no sign of life in {seconds:g} s")
