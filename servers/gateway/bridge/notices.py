"""What is told of no call: by a server to the session of one client, and by clients to a server that they share."""

from collections.abc import Callable
from typing import Any

from shared.protocol.identity import LOG_LEVELS
from shared.protocol.session.client_events import Notified
from shared.protocol.session.events import Change, Told
from shared.server.dispatch.connection import Connection

from .base import Base
from .tasks import OF_TASKS

LISTS = tuple(Change(what) for what in ("tools", "prompts", "resources"))
"""That all lists have changed."""
_CHANGES = {f"notifications/{change.what}/list_changed": change for change in LISTS}


def told(link: Connection, notice: Notified) -> None:
    """Tells the client of `link`: that a list has changed once until it has taken that, of log messages those that it
    wants, nothing of the server's tasks, and all else as it came. What comes while too much waits for the client is
    dropped, but for lists. Never waits or raises."""
    if notice.method in _CHANGES:
        link.changed(_CHANGES[notice.method])
    elif link.is_behind or notice.method.startswith(OF_TASKS):
        return
    elif notice.method != "notifications/message" or _wants(link, notice.params):
        link.session.tell(notice.method, notice.params)
        link.soon()


def _wants(link: Connection, params: dict[str, Any]) -> bool:
    peer, level = link.session.peer, params.get("level")
    return peer is not None and isinstance(level, str) and level in LOG_LEVELS and peer.wants_log(level)


class RootsOf:
    """A `Watcher` of one client of a server that is shared: the server is told to ask for the roots again. `forget`
    is called when the client is gone."""

    def __init__(self, base: Base, forget: Callable[[], None]) -> None:
        self._base = base
        self._forget = forget

    def roots_changed(self) -> None:
        """The roots of the client are others now."""
        if self._base.up and not self._base.stateless and not self._base.client.is_behind:
            self._base.client.roots_changed()

    def told(self, event: Told) -> None:
        """What it says otherwise would be taken for what all of them say."""

    def left(self) -> None:
        """The client is gone."""
        self._forget()
