"""Notices between replicas, through the inbox of each in Redis: see `scripts/replicas.lua`."""

import asyncio
from collections.abc import Callable

from ...contracts import Notice
from ...protocol.session.events import Change
from ...protocol.wire.codec import Codec, encode
from .link import Link
from .records import read_change, read_post, write_change, write_post

MAX_CHANGES = 1_000
"""Maximum number of changes that are stored until the other replicas can be reached again."""


class RedisBus:
    """A `Bus` by inboxes, which store entries in order until they are read."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._notice_handler: Callable[[Notice], None] | None = None
        self._waiting: list[Notice] = []
        self._unpublished: dict[tuple[str, Change], None] = {}
        self._unconfirmed: dict[tuple[str, Change], None] = {}
        """Changes that may not have reached the inboxes of the other replicas. If this replica loses its lease, they
        are sent again when it has rejoined, since they have happened nevertheless."""
        # A client's codec does not count the values in a message: the replica that received it has done so.
        self._codec = Codec(is_client=True, line_end=b"")
        self._change_handler: Callable[[str, Change], None] = lambda _run, _change: None

    def receive(self, handler: Callable[[Notice], None]) -> None:
        """Call `handler` once with each notice for this replica, including those that arrived before."""
        self._notice_handler = handler
        waiting, self._waiting = self._waiting, []
        for notice in waiting:
            handler(notice)

    async def deliver(self, replica: int, notice: Notice) -> bool:
        """Send a notice to another replica; return False if that replica is lost."""
        if notice.post is not None:
            words = notice.session, notice.post.body, write_post(notice.post)
            return bool(await self._link.ask("deliver", replica, "post", *words))
        message = b"" if notice.message is None else encode(notice.message)
        return bool(await self._link.ask("deliver", replica, "notice", notice.session, message))

    def publish(self, run_id: str, change: Change) -> None:
        """Notify all other replicas of a change, only once if it is repeated in the same turn of the event loop."""
        if not self._unpublished:
            asyncio.get_running_loop().call_soon(self._publish)
        self._unpublished[run_id, change] = None

    def listen(self, handler: Callable[[str, Change], None]) -> None:
        """Call `handler` with each change that another replica publishes, and with the run to which it belongs."""
        self._change_handler = handler

    def _publish(self) -> None:
        changes, self._unpublished = self._unpublished, {}
        for entry in changes:
            self._unconfirmed[entry] = None
            self._send(entry)
        while len(self._unconfirmed) > MAX_CHANGES:
            del self._unconfirmed[next(iter(self._unconfirmed))]

    def _send(self, unsent: tuple[str, Change]) -> None:
        run_id, change = unsent
        words = ("change", run_id, write_change(change))
        self._link.enqueue("publish", *words, reply=lambda _: self._unconfirmed.pop(unsent, None))

    # Called by this replica

    def on_joined(self) -> None:
        """Send the pending changes after this replica has rejoined the other replicas."""
        for entry in self._unconfirmed:
            self._send(entry)

    def handle(self, notice: Notice) -> None:
        """Deliver `notice` to this replica."""
        if self._notice_handler is None:
            self._waiting.append(notice)
        else:
            self._notice_handler(notice)

    def on_notice(self, session: str, message: bytes) -> None:
        """Handle a notice from another replica: its message is for a request that runs here. Without a message, the
        session has ended."""
        self.handle(Notice(session, self._codec.decode_body(message) if message else None))

    def on_post(self, session: str, body: bytes, data: bytes) -> None:
        """Handle a POST that another replica forwards for a stream of this replica."""
        self.handle(Notice(session, post=read_post(body, data)))

    def on_change(self, run_id: str, data: bytes) -> None:
        """Handle a change from another replica."""
        self._change_handler(run_id, read_change(data))
