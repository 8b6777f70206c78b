"""Notifications outside calls: from a server to the session of one client, and from clients to a server that they
share."""

from collections.abc import Callable

from shared.protocol.identity import LOG_LEVELS
from shared.protocol.session.client_events import Notified
from shared.protocol.session.events import Change, UnknownNotification
from shared.server.dispatch.connection import Connection

from .base import Base
from .repairs import repair_log
from .tasks import TASK_NOTIFICATIONS

LISTS = tuple(Change(what) for what in ("tools", "prompts", "resources"))
"""The changes to all lists."""
_CHANGES = {f"notifications/{change.what}/list_changed": change for change in LISTS}


def forward(link: Connection, notice: Notified) -> None:
    """Forward a notification to the client of `link`: a changed list only once until it is sent, log messages only of
    the level that the client set, nothing about the server's tasks, and all others unchanged. While too many messages
    wait for the client, only changes to lists are kept. Never waits or raises."""
    if notice.method in _CHANGES:
        link.on_change(_CHANGES[notice.method])
    elif link.is_behind or notice.method.startswith(TASK_NOTIFICATIONS):
        return
    elif notice.method != "notifications/message":
        link.session.notify_session(notice.method, notice.params)
        link.send_soon()
    else:
        peer, level = link.session.peer, notice.params.get("level")
        if peer is not None and isinstance(level, str) and level in LOG_LEVELS and peer.wants_log(level):
            link.session.notify_session(notice.method, repair_log(notice.params))
            link.send_soon()


class RootsWatcher:
    """Watches one client of a shared server, and notifies the server when the client's roots have changed. `forget`
    is called when the client has disconnected."""

    def __init__(self, base: Base, forget: Callable[[], None]) -> None:
        self._base = base
        self._forget = forget

    def on_roots_changed(self) -> None:
        """Notify the server that the roots of the client have changed."""
        if self._base.up and not self._base.stateless and not self._base.client.is_behind:
            self._base.client.roots_changed()

    def on_client_notification(self, event: UnknownNotification) -> None:
        """Ignore other notifications: the server would attribute them to all clients."""

    def on_close(self) -> None:
        """Forget the client, which has disconnected."""
        self._forget()
