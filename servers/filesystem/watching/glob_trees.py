"""Telling of what globs match: all globs that begin in one directory and reach as far below it share one tree.

So a file is looked at once, however many globs there are, and a change is compared with those alone that begin above
it and reach down to it.
"""

from collections.abc import Awaitable, Callable, Sequence
from weakref import WeakValueDictionary

import anyio

from servers.filesystem.errors import FilesError
from servers.filesystem.watching.readers import Readers
from servers.filesystem.watching.trees import Event, Tree
from servers.filesystem.watching.watcher import Watcher
from shared.kit.globs import Glob, reach
from shared.kit.rooted.entries import Place
from shared.kit.rooted.files import RootedFiles

Shared = tuple[str, int, tuple[str, ...], tuple[str, ...]]
"""What globs have in common that share a tree: the allowed directories, the place, and the patterns of how far."""


class GlobTrees:
    """Calls `changed(key)` when something appears, changes or goes that the glob of the key matches."""

    def __init__(self, watcher: Watcher, changed: Callable[[str], Awaitable[None]]) -> None:
        self._watcher = watcher
        self._changed = changed
        self._globs: dict[str, Shared] = {}
        self._trees: dict[Shared, tuple[Tree, Readers]] = {}
        self._beginning: WeakValueDictionary[Shared, anyio.Lock] = WeakValueDictionary()

    async def watch(self, key: str, place: Place, pattern: str, beneath: RootedFiles, owner: str = "") -> None:
        """Tell as `key` of what the glob `pattern` matches below `place`. A tree is that of the owner who came first.

        Raises FilesError `bad_pattern`, `outside_roots` for a link that leads out, and `too_many`.
        """
        if key in self._globs:
            return
        glob, reached = Glob([pattern]), reach(pattern)
        await self._watcher.run_for(beneath.roots.outer(place), _require_inside, beneath, place)
        shared = (beneath.roots.mark, place.root_index, place.parts, reached)
        # Whoever comes second waits for the first look of the first.
        async with self._beginning.setdefault(shared, anyio.Lock()):
            if shared not in self._trees:
                await self._begin(shared, place, reached, beneath, owner)
            tree, readers = self._trees[shared]
        if tree.full and not readers:
            self._end(shared)
        if tree.full:
            raise FilesError("too_many", place.written, "there are too many files to watch", "Watch fewer of them.")
        readers.add(key, glob)
        self._globs[key] = shared

    def unwatch(self, key: str) -> None:
        """Tell no more as `key`, if it is a glob's."""
        shared = self._globs.pop(key, None)
        if shared is None:
            return
        readers = self._trees[shared][1]
        readers.remove(key)
        if not readers:
            self._end(shared)

    async def _begin(
        self, shared: Shared, place: Place, reached: Sequence[str], beneath: RootedFiles, owner: str
    ) -> None:
        readers = Readers(place.parts)

        async def tell(events: list[Event]) -> None:
            for key in await self._watcher.run_for(beneath.roots.outer(place), readers.concerned, events):
                await self._changed(key)

        tree = await self._watcher.watch_tree(shared, place, reached, tell, beneath, owner)
        self._trees[shared] = tree, readers

    def _end(self, shared: Shared) -> None:
        del self._trees[shared]
        self._watcher.unwatch(shared)


def _require_inside(beneath: RootedFiles, place: Place) -> None:
    """Raises FilesError `outside_roots` for what leads out of the roots, or to what is denied there."""
    try:
        beneath.stat(place)
    except FilesError as error:
        if error.code in ("outside_roots", "denied"):
            raise beneath.roots.outside(place.written) from None
