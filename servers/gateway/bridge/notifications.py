"""Notifications that belong to no call: from a server to the session of one client, and from clients to a server
whose session they share."""

from collections.abc import Callable

from shared.protocol.identity import LOG_LEVELS
from shared.protocol.session.client_events import Notified
from shared.protocol.session.events import Change, UnknownNotification
from shared.server.dispatch.connection import Connection

from .connection import BridgeConnection
from .repairs import repair_log
from .tasks import TASK_NOTIFICATIONS

LIST_CHANGES = tuple(Change(what) for what in ("tools", "prompts", "resources"))
"""One change for each list."""
_CHANGES = {f"notifications/{change.kind}/list_changed": change for change in LIST_CHANGES}


def forward_notification(link: Connection, message: Notified) -> None:
    """Forward a notification to the client of `link`. Several changes of one list become one notification until it is
    sent; log messages below the client's level, and notifications about the server's tasks, are dropped; all others
    are sent unchanged. While too many messages wait for the client, only changes of lists are kept. Never waits or
    raises."""
    if message.method in _CHANGES:
        link.on_change(_CHANGES[message.method])
    elif link.is_behind or message.method.startswith(TASK_NOTIFICATIONS):
        return
    elif message.method != "notifications/message":
        link.session.notify_session(message.method, message.params)
        link.send_soon()
    else:
        peer, level = link.session.peer, message.params.get("level")
        if peer is not None and isinstance(level, str) and level in LOG_LEVELS and peer.wants_log(level):
            link.session.notify_session(message.method, repair_log(message.params))
            link.send_soon()


class RootsWatcher:
    """Watches one client of a shared session, and notifies the server when the client's roots have changed. `forget`
    is called when the client has disconnected."""

    def __init__(self, connection: BridgeConnection, forget: Callable[[], None]) -> None:
        self._connection = connection
        self._forget = forget

    def on_roots_changed(self) -> None:
        """Notify the server that the roots of the client have changed."""
        if self._connection.up and not self._connection.stateless and not self._connection.client.is_behind:
            self._connection.client.roots_changed()

    def on_client_notification(self, event: UnknownNotification) -> None:
        """Ignore other notifications: the server would attribute them to all clients."""

    def on_close(self) -> None:
        """Forget the client, which has disconnected."""
        self._forget()
