"""The sessions of all replicas, in Redis: see `scripts/sessions.lua`."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ...contracts import News, SessionRecord
from ...protocol.identity import Principal
from ...protocol.session.handshake import Snapshot, merge
from ...protocol.wire.jsonrpc import RequestId, json_of
from .link import Arguments, Link
from .records import read_session, write_session

_IDLE_SECONDS = 60.0
_MANY = 500
"""Sessions that are kept by one operation."""


class RedisSessions:
    """A `SessionStore` in Redis."""

    def __init__(self, link: Link, hand: Callable[[News], None]) -> None:
        """`hand` takes what this replica is told of a session."""
        self._link = link
        self._hand = hand
        self._known: dict[str, tuple[bytes, SessionRecord]] = {}
        """The sessions that this replica has: the revision that it knows, and its record."""
        self.idle_seconds = _IDLE_SECONDS
        """The least that any of them is kept for."""

    async def create(self, record: SessionRecord) -> None:
        """Adds a session, which this replica has."""
        idle = round(record.idle_seconds * 1000)
        self.idle_seconds = min(self.idle_seconds, record.idle_seconds)
        words = (record.id, write_session(record), _owner(record.principal), idle)
        await self._link.ask("create", *words, undo=lambda _: ("delete", record.id))
        self._known[record.id] = b"1", record

    async def enter(
        self, id: str, principal: Principal | None, ids: Sequence[RequestId] = ()
    ) -> tuple[SessionRecord, bool] | None:
        """The session of that id, for a request of `principal`; None where there is none of his. With it, whether the
        requests `ids` are served here from now on."""
        known = self._known.get(id)
        revision = b"" if known is None else known[0]
        claims = [json_of(one) for one in ids]

        def undo(reply: list[Any] | None) -> Arguments | None:
            return None if reply is None or not claims or not reply[2] else ("leave", id, *claims)

        reply = await self._link.ask("enter", id, _owner(principal), revision, *claims, undo=undo)
        if reply is None:
            self._known.pop(id, None)
            return None
        revision, data, is_free = reply
        if data is not None or known is None:
            known = self._known[id] = revision, read_session(id, data)
            self.idle_seconds = min(self.idle_seconds, known[1].idle_seconds)
        return known[1], bool(is_free)

    def leave(self, id: str, ids: Sequence[RequestId]) -> None:
        """The requests `ids` are answered, or given up: their ids are free."""
        if ids:
            self._link.tell("leave", id, *(json_of(one) for one in ids))

    async def owner(self, id: str, request_id: RequestId) -> int | None:
        """The replica that serves that request; None where none does."""
        number = await self._link.ask("owner", id, json_of(request_id))
        return None if number is None else int(number)

    async def update(self, id: str, before: Snapshot, after: Snapshot) -> None:
        """What lasts of a session has changed here, which is merged with what changed elsewhere."""
        known = self._known.get(id)
        if known is None:
            # It has ended, or this replica was lost since: who is told that the others know has to be told the truth.
            known = _read(id, await self._link.ask("update", id, b"", b""))
        while known is not None:
            revision, record = known
            merged = merge(record.snapshot, before, after)
            changed = replace(record, snapshot=merged)
            reply = await self._link.ask("update", id, revision, write_session(changed))
            is_done = reply is not None and reply[1] is None
            known = (reply[0], changed) if is_done else _read(id, reply)
            if known is not None and id in self._known:
                self._known[id] = known
            if is_done:
                if merged is not after:
                    self._hand(News(id, snapshot=merged))
                return

    def watch(self, id: str, uri: str, *, is_watched: bool) -> None:
        """This replica tells the client of that resource from now on, or none does. That which did is told."""
        self._link.tell("watch", id, uri, int(is_watched))

    async def adopt(self, id: str) -> Sequence[str]:
        """The resources that no replica tells the client of any more: this one does from now on."""
        uris = await self._link.ask("adopt", id)
        return [uri.decode() for uri in uris]

    async def lapse(self, id: str, *, busy: bool) -> bool:
        """This replica was not asked for the session for as long as one may be idle. Whether it ended by that."""
        has_ended = bool(await self._link.ask("lapse", id, int(busy)))
        if has_ended or not busy:
            self._known.pop(id, None)
        return has_ended

    def release(self, id: str) -> None:
        """This replica no longer has the session, which goes on."""
        if self._known.pop(id, None) is not None:
            self._link.tell("release", id)

    def delete(self, id: str) -> None:
        """Ends a session."""
        self._known.pop(id, None)
        self._link.tell("delete", id)

    async def settle(self) -> None:
        """Returns when Redis has all that it was told before."""
        await self._link.ask("look")

    # What its replica does

    def release_all(self) -> None:
        """This replica leaves the others, who go on with what it has."""
        for id_ in list(self._known):
            self.release(id_)

    def keep(self) -> None:
        """What this replica has lasts."""
        ids = list(self._known)
        for start in range(0, len(ids), _MANY):
            self._link.tell("keep", *ids[start : start + _MANY])

    def heard(self, id: str, revision: bytes, data: bytes) -> None:
        """Another replica says how a session is now."""
        if id in self._known:
            record = read_session(id, data)
            self._known[id] = revision, record
            self._hand(News(id, snapshot=record.snapshot))

    def heard_watch(self, id: str, uri: str) -> None:
        """Another replica tells the client of that resource from now on, or none does."""
        self._hand(News(id, uri=uri))

    def heard_end(self, id: str) -> None:
        """Another replica has ended a session."""
        self._known.pop(id, None)
        self._hand(News(id))

    def lose(self) -> None:
        """This replica has no sessions any more."""
        self._known.clear()


def _read(id: str, reply: list[bytes] | None) -> tuple[bytes, SessionRecord] | None:
    """The revision of a session, and its record, as a change is told that came too late."""
    return None if reply is None else (reply[0], read_session(id, reply[1]))


def _owner(principal: Principal | None) -> str:
    return "" if principal is None else f"={principal.key}"
