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
"""The idle time, in seconds, that is assumed until a session with a shorter one is known."""
_MAX_SESSIONS = 500
"""Maximum number of sessions whose expiry one operation postpones."""


class RedisSessions:
    """A `SessionStore` in Redis."""

    def __init__(self, link: Link, handler: Callable[[Notice], None]) -> None:
        """`handler` is called with notices about sessions that this replica has open."""
        self._link = link
        self._handler = handler
        self._cached: dict[str, tuple[bytes, SessionRecord]] = {}
        """The sessions that this replica has open, by id: the latest known revision of each, and its record."""
        self.idle_seconds = _IDLE_SECONDS
        """The shortest idle time of these sessions, in seconds."""

    async def create(self, record: SessionRecord) -> None:
        """Add a session, which this replica has open."""
        idle = round(record.idle_seconds * 1000)
        self.idle_seconds = min(self.idle_seconds, record.idle_seconds)
        arguments = (record.id, write_session(record), _principal_key(record.principal), idle)
        await self._link.ask("create", *arguments, undo=lambda _: ("delete", record.id))
        self._cached[record.id] = b"1", record

    async def enter(
        self, id: str, principal: Principal | None, request_ids: Sequence[RequestId] = ()
    ) -> tuple[SessionRecord, bool] | None:
        """Open the session `id` on this replica, for the requests `request_ids` of `principal`. Return None if the
        principal has no such session; else its record, and True if this replica may serve these requests, or False if
        one of them is already being served."""
        cached = self._cached.get(id)
        revision = b"" if cached is None else cached[0]
        claims = [json_of(request_id) for request_id in request_ids]

        def undo(reply: list[Any] | None) -> Arguments | None:
            return None if reply is None or not claims or not reply[2] else ("leave", id, *claims)

        reply = await self._link.ask("enter", id, _principal_key(principal), revision, *claims, undo=undo)
        if reply is None:
            self._cached.pop(id, None)
            return None
        revision, data, is_free = reply
        if data is not None or cached is None:
            cached = self._cached[id] = revision, read_session(id, data)
            self.idle_seconds = min(self.idle_seconds, cached[1].idle_seconds)
        return cached[1], bool(is_free)

    def leave(self, id: str, request_ids: Sequence[RequestId]) -> None:
        """Free `request_ids`: the requests were answered or abandoned."""
        if request_ids:
            self._link.enqueue("leave", id, *(json_of(request_id) for request_id in request_ids))

    async def serving_replica(self, id: str, request_id: RequestId) -> int | None:
        """Return the number of the replica that serves the request `request_id`; None if no replica does."""
        number = await self._link.ask("serving_replica", id, json_of(request_id))
        return None if number is None else int(number)

    async def update(self, id: str, before: Snapshot, after: Snapshot) -> None:
        """Store that a session's state has changed from `before` to `after`, merged with changes by others."""
        cached = self._cached.get(id)
        if cached is None:
            # The session has ended, or this replica has lost its lease since it opened the session. An update without
            # a revision changes nothing, and returns the current state if the session still exists.
            cached = _read_newer_state(id, await self._link.ask("update", id, b"", b""))
        while cached is not None:
            revision, record = cached
            merged = merge(record.snapshot, before, after)
            changed = replace(record, snapshot=merged)
            reply = await self._link.ask("update", id, revision, write_session(changed))
            is_done = reply is not None and reply[1] is None
            cached = (reply[0], changed) if is_done else _read_newer_state(id, reply)
            if cached is not None and id in self._cached:
                self._cached[id] = cached
            if is_done:
                if merged is not after:
                    self._handler(Notice(id, snapshot=merged))
                return

    def watch(self, id: str, uri: str, *, is_watched: bool) -> None:
        """Make this replica the one that reports changes of the resource to the client, or stop reporting them. The
        replica that reported them before is notified."""
        self._link.enqueue("watch", id, uri, int(is_watched))

    async def adopt(self, id: str) -> Sequence[str]:
        """Make this replica report the resources that no replica reports any more; return their URIs."""
        uris = await self._link.ask("adopt", id)
        return [uri.decode() for uri in uris]

    async def lapse(self, id: str, *, is_busy: bool) -> bool:
        """Record that this replica received no request for the session during the idle time. Return True if that
        ended the session, because no other replica received one. `is_busy` is true if this replica must keep the
        session open."""
        has_ended = bool(await self._link.ask("lapse", id, int(is_busy)))
        if has_ended or not is_busy:
            self._cached.pop(id, None)
        return has_ended

    def release(self, id: str) -> None:
        """Close the session on this replica only; the session continues."""
        if self._cached.pop(id, None) is not None:
            self._link.enqueue("release", id)

    def delete(self, id: str) -> None:
        """End a session."""
        self._cached.pop(id, None)
        self._link.enqueue("delete", id)

    async def settle(self) -> None:
        """Wait until Redis has received all earlier calls."""
        await self._link.ask("look")

    # Called by its replica

    def release_all(self) -> None:
        """Close all sessions on this replica, which is leaving; they continue on the others."""
        for id_ in list(self._cached):
            self.release(id_)

    def extend(self) -> None:
        """Postpone the expiry of the sessions that this replica has open."""
        ids = list(self._cached)
        for start in range(0, len(ids), _MAX_SESSIONS):
            self._link.enqueue("keep", *ids[start : start + _MAX_SESSIONS])

    def on_snapshot(self, id: str, revision: bytes, data: bytes) -> None:
        """Handle the new state of a session that another replica has changed."""
        if id in self._cached:
            record = read_session(id, data)
            self._cached[id] = revision, record
            self._handler(Notice(id, snapshot=record.snapshot))

    def on_unwatch(self, id: str, uri: str) -> None:
        """Stop reporting changes of the resource: another replica does that now, or none has to."""
        self._handler(Notice(id, uri=uri))

    def on_end(self, id: str) -> None:
        """Forget a session that another replica has ended."""
        self._cached.pop(id, None)
        self._handler(Notice(id))

    def on_lost(self) -> None:
        """Forget all sessions, because this replica has lost its lease."""
        self._cached.clear()


def _read_newer_state(id: str, reply: list[bytes] | None) -> tuple[bytes, SessionRecord] | None:
    """Return the current revision and record of a session from a `reply` to "update", which contains them if another
    replica has changed the session first; None if the session has ended."""
    return None if reply is None else (reply[0], read_session(id, reply[1]))


def _principal_key(principal: Principal | None) -> str:
    return "" if principal is None else f"={principal.key}"
