"""Messages between replicas. Each replica has an inbox in Redis: see `scripts/replicas.lua`."""

import asyncio
from collections.abc import Callable

from ...contracts import Notice
from ...protocol.session.events import Change
from ...protocol.wire.codec import Codec, encode
from .link import Link
from .records import read_change, read_post, write_change, write_post

MAX_CHANGES = 1_000
"""Maximum number of changes that are kept while the other replicas can't be reached."""


class RedisBus:
    """A `Bus` in Redis. The inbox of a replica stores entries, in order, until the replica reads them."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._notice_handler: Callable[[Notice], None] | None = None
        self._waiting: list[Notice] = []
        self._unpublished: dict[tuple[str, Change], None] = {}
        self._unconfirmed: dict[tuple[str, Change], None] = {}
        """Changes that may not have reached the inboxes of the other replicas. If this replica loses its lease, it
        sends them again after it has rejoined."""
        # A codec of the client side does not check the number of values in a message. The replica that received the
        # message has already checked that.
        self._codec = Codec(is_client=True, line_end=b"")
        self._change_handler: Callable[[str, Change], None] = lambda _run, _change: None

    def receive(self, handler: Callable[[Notice], None]) -> None:
        """Call `handler` with each notice for this replica, first with those that arrived before this call."""
        self._notice_handler = handler
        waiting, self._waiting = self._waiting, []
        for notice in waiting:
            handler(notice)

    async def deliver(self, replica: int, notice: Notice) -> bool:
        """Send `notice` to another replica; return False if that replica no longer exists."""
        if notice.post is not None:
            arguments = notice.session, notice.post.body, write_post(notice.post)
            return bool(await self._link.ask("deliver", replica, "post", *arguments))
        message = b"" if notice.message is None else encode(notice.message)
        return bool(await self._link.ask("deliver", replica, "notice", notice.session, message))

    def publish(self, run_id: str, change: Change) -> None:
        """Send `change`, in the run with the id `run_id`, to all other replicas. A change that is repeated in the
        same turn of the event loop is sent only once."""
        if not self._unpublished:
            asyncio.get_running_loop().call_soon(self._publish)
        self._unpublished[run_id, change] = None

    def listen(self, handler: Callable[[str, Change], None]) -> None:
        """Call `handler` with each change that another replica publishes, and with the id of its run."""
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
        arguments = ("change", run_id, write_change(change))
        self._link.enqueue("publish", *arguments, on_reply=lambda _: self._unconfirmed.pop(unsent, None))

    # Called by this replica

    def on_joined(self) -> None:
        """Send the unconfirmed changes again, after this replica has rejoined the others."""
        for entry in self._unconfirmed:
            self._send(entry)

    def handle(self, notice: Notice) -> None:
        """Pass `notice` to the handler of this replica, or keep it until there is one."""
        if self._notice_handler is None:
            self._waiting.append(notice)
        else:
            self._notice_handler(notice)

    def on_notice(self, session: str, message: bytes) -> None:
        """Handle a notice from another replica. `message` is for a request that runs here; if it is empty, the
        session has ended."""
        self.handle(Notice(session, self._codec.decode_body(message) if message else None))

    def on_post(self, session: str, body: bytes, data: bytes) -> None:
        """Handle a POST that another replica has received for a stream that this replica has."""
        self.handle(Notice(session, post=read_post(body, data)))

    def on_change(self, run_id: str, data: bytes) -> None:
        """Handle a change that another replica has published."""
        self._change_handler(run_id, read_change(data))
