"""The sessions of all replicas, in Redis: see `scripts/sessions.lua`."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ...contracts import Notice, SessionRecord
from ...protocol.identity import Principal
from ...protocol.session.handshake import Snapshot, merge
from ...protocol.wire.jsonrpc import RequestId, json_of
from .link import Arguments, Link
from .records import read_session, write_session

_IDLE_SECONDS = 60.0
"""The shortest idle time that is assumed before the first session is known."""
_MAX_SESSIONS = 500
"""Maximum number of sessions whose lifetime one operation extends."""


class RedisSessions:
    """A `SessionStore` in Redis."""

    def __init__(self, link: Link, handler: Callable[[Notice], None]) -> None:
        """`handler` is called with notices for this replica about a session."""
        self._link = link
        self._handler = handler
        self._cached: dict[str, tuple[bytes, SessionRecord]] = {}
        """The sessions that this replica holds: the latest known revision of each, and its record."""
        self.idle_seconds = _IDLE_SECONDS
        """The shortest idle time of any of these sessions."""

    async def create(self, record: SessionRecord) -> None:
        """Add a session that this replica holds."""
        idle = round(record.idle_seconds * 1000)
        self.idle_seconds = min(self.idle_seconds, record.idle_seconds)
        words = (record.id, write_session(record), _owner_key(record.principal), idle)
        await self._link.ask("create", *words, undo=lambda _: ("delete", record.id))
        self._cached[record.id] = b"1", record

    async def enter(
        self, id: str, principal: Principal | None, ids: Sequence[RequestId] = ()
    ) -> tuple[SessionRecord, bool] | None:
        """Return the session with that id for a request from `principal`, or None if the principal has no such
        session. The second value is True if this replica serves the requests `ids` from now on."""
        cached = self._cached.get(id)
        revision = b"" if cached is None else cached[0]
        claims = [json_of(request_id) for request_id in ids]

        def undo(reply: list[Any] | None) -> Arguments | None:
            return None if reply is None or not claims or not reply[2] else ("leave", id, *claims)

        reply = await self._link.ask("enter", id, _owner_key(principal), revision, *claims, undo=undo)
        if reply is None:
            self._cached.pop(id, None)
            return None
        revision, data, is_free = reply
        if data is not None or cached is None:
            cached = self._cached[id] = revision, read_session(id, data)
            self.idle_seconds = min(self.idle_seconds, cached[1].idle_seconds)
        return cached[1], bool(is_free)

    def leave(self, id: str, ids: Sequence[RequestId]) -> None:
        """Free the request ids `ids`, whose requests were answered or abandoned."""
        if ids:
            self._link.enqueue("leave", id, *(json_of(request_id) for request_id in ids))

    async def owner(self, id: str, request_id: RequestId) -> int | None:
        """Return the number of the replica that serves that request; None if no replica does."""
        number = await self._link.ask("owner", id, json_of(request_id))
        return None if number is None else int(number)

    async def update(self, id: str, before: Snapshot, after: Snapshot) -> None:
        """Merge a change to the persistent state of a session with the changes made elsewhere."""
        cached = self._cached.get(id)
        if cached is None:
            # The session has ended, or this replica was given up as lost. The caller must not return before the other
            # replicas know the change.
            cached = _read_late_reply(id, await self._link.ask("update", id, b"", b""))
        while cached is not None:
            revision, record = cached
            merged = merge(record.snapshot, before, after)
            changed = replace(record, snapshot=merged)
            reply = await self._link.ask("update", id, revision, write_session(changed))
            is_done = reply is not None and reply[1] is None
            cached = (reply[0], changed) if is_done else _read_late_reply(id, reply)
            if cached is not None and id in self._cached:
                self._cached[id] = cached
            if is_done:
                if merged is not after:
                    self._handler(Notice(id, snapshot=merged))
                return

    def watch(self, id: str, uri: str, *, is_watched: bool) -> None:
        """Make this replica report the resource's changes to the client, or stop reporting them. The replica that
        reported them before is notified."""
        self._link.enqueue("watch", id, uri, int(is_watched))

    async def adopt(self, id: str) -> Sequence[str]:
        """Take over the resources that no replica reports anymore, and return them."""
        uris = await self._link.ask("adopt", id)
        return [uri.decode() for uri in uris]

    async def lapse(self, id: str, *, busy: bool) -> bool:
        """Record that this replica received no request for the session during the idle time. Return True if that
        ended the session."""
        has_ended = bool(await self._link.ask("lapse", id, int(busy)))
        if has_ended or not busy:
            self._cached.pop(id, None)
        return has_ended

    def release(self, id: str) -> None:
        """Release the session on this replica; the session continues."""
        if self._cached.pop(id, None) is not None:
            self._link.enqueue("release", id)

    def delete(self, id: str) -> None:
        """End a session."""
        self._cached.pop(id, None)
        self._link.enqueue("delete", id)

    async def settle(self) -> None:
        """Wait until Redis has received all earlier calls."""
        await self._link.ask("look")

    # For its replica

    def release_all(self) -> None:
        """Release all sessions, because this replica is leaving; they continue on the other replicas."""
        for id_ in list(self._cached):
            self.release(id_)

    def extend(self) -> None:
        """Extend the lifetime of the sessions of this replica."""
        ids = list(self._cached)
        for start in range(0, len(ids), _MAX_SESSIONS):
            self._link.enqueue("keep", *ids[start : start + _MAX_SESSIONS])

    def on_snapshot(self, id: str, revision: bytes, data: bytes) -> None:
        """Handle the new state of a session from another replica."""
        if id in self._cached:
            record = read_session(id, data)
            self._cached[id] = revision, record
            self._handler(Notice(id, snapshot=record.snapshot))

    def on_unwatch(self, id: str, uri: str) -> None:
        """Handle the notice that another replica now reports that resource to the client, or that nobody does."""
        self._handler(Notice(id, uri=uri))

    def on_end(self, id: str) -> None:
        """Handle the end of a session by another replica."""
        self._cached.pop(id, None)
        self._handler(Notice(id))

    def lose(self) -> None:
        """Delete all sessions: this replica no longer holds any."""
        self._cached.clear()


def _read_late_reply(id: str, reply: list[bytes] | None) -> tuple[bytes, SessionRecord] | None:
    """Return the revision of a session, and its record, from the reply to a change that came too late."""
    return None if reply is None else (reply[0], read_session(id, reply[1]))


def _owner_key(principal: Principal | None) -> str:
    return "" if principal is None else f"={principal.key}"
