"""What clients subscribe to besides single files: globs, and the list of what stands in parts of the roots.

A URI such as `file:///root/src/**/*.py` is a glob and stands for what it matches. A `*` that is written as such makes
a URI a glob; one in the name of a file is written %2A. The glob begins with the component the first `*` is in, and
from there on is percent-decoded and understood as `search_files` does. What stands before it is an ordinary
directory.

All globs that begin in one directory and reach as far below it share one tree: a file is looked at once, however many
globs there are, and a change is compared with those alone that begin above it and reach down to it. A key is told
once of a look, so its glob is compared with no more names after the first that it matches. Where there would be too
many comparisons all the same, all keys are told: to be told is a reason to look, and says no more.
"""

import os
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from urllib.parse import unquote_to_bytes
from weakref import WeakValueDictionary

import anyio

from servers.common.files.rooted_files import RootedFiles
from servers.common.globs import Glob, reach
from servers.filesystem.errors import FilesError
from servers.filesystem.watch.tree import Event, Parts, Tree
from servers.filesystem.watch.watcher import Tell, Watcher
from shared.program.files.entries import Place

MAX_COMPARED = 100_000
"""Comparisons of a path with a glob, for one look: a fifth of a second."""
MAX_LISTED = 64
"""Sets of parts of the roots of which the listings are watched at once."""

Shared = tuple[str, int, tuple[str, ...], tuple[str, ...]]
"""What globs have in common that share a tree: the allowed directories, the place, and the patterns of how far."""


def split_glob(uri: str) -> tuple[str, str] | None:
    """The URI of the directory and the glob below it, or None where `uri` is no glob. Raises FilesError."""
    star = uri.find("*")
    if star < 0:
        return None
    start = uri.rfind("/", 0, star) + 1
    try:
        pattern = os.fsdecode(unquote_to_bytes(uri[start:]))
    except UnicodeError:
        raise FilesError("bad_pattern", uri, "the URI holds characters no file name can have") from None
    # With a slash in it a pattern begins here; without one it would stand for names at any depth.
    return uri[:start], f"./{pattern}"


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

    def concerned(self, uri: str) -> list[str]:
        """The keys of the globs that match what has this `file:` URI."""
        found: list[str] = []
        for key, shared in self._globs.items():
            start = key[key.find("file:") :].partition("/./")[0] + "/"
            names = [os.fsdecode(unquote_to_bytes(name)) for name in uri.removeprefix(start).split("/")]
            if uri.startswith(start) and self._trees[shared][1].has(key, names):
                found.append(key)
        return found

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


class Readers:
    """The globs below the directory at `start`, each under its key."""

    def __init__(self, start: Parts) -> None:
        self._start = len(start)
        self._globs: dict[str, Glob] = {}

    def __len__(self) -> int:
        return len(self._globs)

    def add(self, key: str, glob: Glob) -> None:
        """Has `key` told of what `glob` matches."""
        self._globs[key] = glob

    def remove(self, key: str) -> None:
        """No longer."""
        del self._globs[key]

    def has(self, key: str, names: Sequence[str]) -> bool:
        """Whether the glob of `key` matches what has these names, the first of which stands in the directory."""
        return _matches(self._globs[key], tuple(names[:-1]), names[-1:])

    def concerned(self, events: Sequence[Event]) -> list[str]:
        """The keys to tell of these events."""
        globs = list(self._globs.items())
        if len(globs) * len(events) > MAX_COMPARED:
            return [key for key, _ in globs]
        changed: dict[Parts, set[str]] = defaultdict(set)
        for event in events:
            *parents, name = event.place.parts[self._start :]
            changed[tuple(parents)].add(name)
        return [key for key, glob in globs if any(_matches(glob, *one) for one in changed.items())]


def _matches(glob: Glob, parents: Parts, names: Iterable[str]) -> bool:
    states = glob.after(parents)
    return any(glob.accepts(glob.step(states, name)) for name in names)


class Listings:
    """Tells clients that work in parts of the roots when the list of what stands in these parts changes.

    Nobody says when a client has lost its interest, so only the parts that were listed last are watched."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self._listed: dict[str, int] = {}
        """The sets of parts by their mark, with the number of parts; the last one was listed last."""

    async def watch(self, parts: RootedFiles, tell: Tell) -> None:
        """Call `tell` when an entry of a part appears, goes, or changes its name. Raises FilesError."""
        mark = parts.roots.mark
        known = self._listed.pop(mark, None)
        self._listed[mark] = len(parts.roots.paths)
        if known is not None:
            return
        if len(self._listed) > MAX_LISTED:
            oldest = next(iter(self._listed))
            for index in range(self._listed.pop(oldest)):
                self._watcher.unwatch((oldest, index))
        await self._watcher.watch_listing(mark, tell, parts)
