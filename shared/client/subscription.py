"""One subscription of a client: which notifications are its own, and whom it tells."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import anyio

from ..protocol.session.client_events import Notified
from .options import Notify

__all__ = ["Subscription"]

_LIST_CHANGES = frozenset(f"notifications/{what}/list_changed" for what in ("tools", "prompts", "resources"))
_UPDATED = "notifications/resources/updated"
_ACKNOWLEDGED = "notifications/subscriptions/acknowledged"


@dataclass(eq=False, slots=True)
class Subscription:
    """Changes of `uris`, and with `lists` of the lists of tools, prompts and resources, told to `callback`."""

    uris: Sequence[str]
    callback: Notify
    lists: bool = True
    honoured: dict[str, Any] = field(default_factory=dict)
    """What the server acknowledged, in the stateless era; nothing before it."""
    acknowledged: anyio.Event = field(default_factory=anyio.Event)
    wait_for_end: Callable[[], Awaitable[object]] = anyio.sleep_forever

    async def ended(self) -> None:
        """Waits until nothing more can come, because the server ended the stream or is gone. What changed since
        then is not told: list and read again."""
        with suppress(ConnectionError):
            await self.wait_for_end()

    def filter(self) -> dict[str, Any]:
        """The `notifications` param of `subscriptions/listen`."""
        lists = {f"{what}ListChanged": True for what in ("tools", "prompts", "resources")} if self.lists else {}
        return {**lists, "resourceSubscriptions": list(self.uris)} if self.uris else lists

    def take(self, notice: Notified) -> None:
        """Takes a notification of its own listen stream."""
        if notice.method == _ACKNOWLEDGED:
            honoured = notice.params.get("notifications")
            self.honoured = honoured if isinstance(honoured, dict) else {}
            self.acknowledged.set()
        else:
            self.callback(notice.method, notice.params)

    def offer(self, notice: Notified) -> bool:
        """Takes a notification of the handshake era, which says not whose it is; False where it is none of ours."""
        if notice.method in _LIST_CHANGES:
            is_ours = self.lists
        else:
            is_ours = notice.method == _UPDATED and self._covers(notice.params.get("uri"))
        if is_ours:
            self.callback(notice.method, notice.params)
        return is_ours

    def _covers(self, uri: object) -> bool:
        """Whether we asked for it, or for something that it is a part of (2025-11-25, Resources)."""
        return isinstance(uri, str) and any(uri == one or uri.startswith(one.rstrip("/") + "/") for one in self.uris)
