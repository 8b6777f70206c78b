"""The parts of the roots whose lists are watched: those that were listed last."""

import pytest

from servers.filesystem.watch.subscriptions import MAX_LISTED, Listings
from servers.filesystem.watch.watcher import Watcher
from shared.kit.rooted.names import uri
from shared.kit.rooted.narrowing import narrowed


class Counted:
    """A watcher that does not run, and lists over it."""

    def __init__(self, files, root):
        self._files = files
        self._root = root
        self.watcher = Watcher(files, self._changed)
        self.listings = Listings(self.watcher)

    async def list(self, *names):
        parts = narrowed(self._files, [uri(str(self._root / name)) for name in names])
        await self.listings.watch(parts, self._tell)

    @property
    def watched(self):
        return self.watcher.health["watched"]

    async def _changed(self, _key):
        raise AssertionError("nothing changes here")

    async def _tell(self):
        raise AssertionError("nothing changes here")


@pytest.fixture
def counted(files, root):
    return Counted(files, root)


async def test_each_part_is_watched_once(counted):
    for names in (["a"], ["a"], ["b", "c"], ["a"]):
        await counted.list(*names)
    assert counted.watched == 3


async def test_no_more_than_some_sets_are_watched(counted):
    await counted.list("x", "y")
    for number in range(MAX_LISTED):
        await counted.list(str(number))
    assert counted.watched == MAX_LISTED


async def test_what_was_listed_last_is_watched_on(counted):
    await counted.list("x", "y")
    for number in range(MAX_LISTED - 1):
        await counted.list(str(number))
    await counted.list("x", "y")
    await counted.list("new")
    assert counted.watched == MAX_LISTED + 1
