"""What one replica tells the others, by the inbox that each has in Redis: see `scripts/replicas.lua`."""

import asyncio
from collections.abc import Callable

from ...contracts import News
from ...protocol.session.events import Change
from ...protocol.wire.codec import Codec, encode
from .link import Link
from .records import read_change, read_post, write_change, write_post

MOST_CHANGES = 1_000
"""Those that are kept for when the others can be reached again."""


class RedisBus:
    """A `Bus` by inboxes, which keep what they get in order until it is read."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._hand: Callable[[News], None] | None = None
        self._waiting: list[News] = []
        self._told: dict[tuple[str, Change], None] = {}
        self._owed: dict[tuple[str, Change], None] = {}
        """What the others may not have heard yet: it happened, even where this replica is lost meanwhile."""
        # As a client's: what another replica passes on was bounded when it came there.
        self._codec = Codec(is_client=True, line_end=b"")
        self._hear: Callable[[str, Change], None] = lambda _run, _change: None

    def receive(self, hand: Callable[[News], None]) -> None:
        """Has `hand` called with each of the news for this replica, also with those that came before, once each."""
        self._hand = hand
        waiting, self._waiting = self._waiting, []
        for news in waiting:
            hand(news)

    async def deliver(self, replica: int, news: News) -> bool:
        """Tells another replica; False where it is gone."""
        if news.post is not None:
            words = news.session, news.post.body, write_post(news.post)
            return bool(await self._link.ask("deliver", replica, "post", *words))
        message = b"" if news.message is None else encode(news.message)
        return bool(await self._link.ask("deliver", replica, "news", news.session, message))

    def publish(self, run: str, change: Change) -> None:
        """Tells all other replicas of a change, once where it is the same as one before in this turn of the loop."""
        if not self._told:
            asyncio.get_running_loop().call_soon(self._publish)
        self._told[run, change] = None

    def hear(self, hand: Callable[[str, Change], None]) -> None:
        """Has `hand` called with each change that another replica tells of, and the run that it is of."""
        self._hear = hand

    def _publish(self) -> None:
        told, self._told = self._told, {}
        for one in told:
            self._owed[one] = None
            self._tell(one)
        while len(self._owed) > MOST_CHANGES:
            del self._owed[next(iter(self._owed))]

    def _tell(self, told: tuple[str, Change]) -> None:
        run, change = told
        words = ("change", run, write_change(change))
        self._link.tell("publish", *words, reply=lambda _: self._owed.pop(told, None))

    # What its replica does

    def joined(self) -> None:
        """This replica is one of the others again: they hear what they could not."""
        for one in self._owed:
            self._tell(one)

    def hand(self, news: News) -> None:
        """Has this replica hear of `news`."""
        if self._hand is None:
            self._waiting.append(news)
        else:
            self._hand(news)

    def heard(self, session: str, message: bytes) -> None:
        """Another replica has sent a message for what runs here."""
        self.hand(News(session, self._codec.decode_body(message) if message else None))

    def heard_post(self, session: str, body: bytes, data: bytes) -> None:
        """Another replica passes on what was posted there for a stream that is here."""
        self.hand(News(session, post=read_post(body, data)))

    def heard_change(self, run: str, data: bytes) -> None:
        """Another replica tells of a change."""
        self._hear(run, read_change(data))
