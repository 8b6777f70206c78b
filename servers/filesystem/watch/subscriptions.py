"""Subscriptions to globs, and to the entries of parts of the roots.

A URI such as `file:///root/src/**/*.py` is a glob for the entries that it matches. A literal `*` makes a URI a glob;
in a file name it is written as %2A. The glob begins with the component that contains the first `*`, is
percent-decoded, and is interpreted as in `search_files`. The part before it is an ordinary directory.

All globs that begin in one directory and have the same depth share one tree: a file is checked once, however many
globs there are, and a change is compared only with globs that begin above it and reach its depth. A key is notified
at most once per check, so its glob is not compared with further names after the first match. If there would still be
too many comparisons, all keys are notified: a notification only says that something may have changed.
"""

import os
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import ExitStack
from urllib.parse import unquote_to_bytes
from weakref import WeakValueDictionary

import anyio

from servers.common.files.rooted_files import RootedFiles
from servers.common.globs import Glob, reachable_patterns
from shared.program.files.entries import Place

from ..errors import FilesError
from .tree import Event, Parts, Tree
from .watcher import Callback, Watcher

MAX_COMPARED = 100_000
"""Maximum number of comparisons of a path with a glob in one check, which take about 0.2 s."""
MAX_LISTED = 64
"""Maximum number of sets of parts of the roots whose listings are watched at once."""

TreeKey = tuple[str, int, tuple[str, ...], tuple[str, ...]]
"""What globs sharing a tree have in common: allowed directories, place, and patterns of the same depth."""


def split_glob(uri: str) -> tuple[str, str] | None:
    """Return the URI of the directory and the glob below it, or None if `uri` is not a glob. Raises FilesError."""
    star = uri.find("*")
    if star < 0:
        return None
    start = uri.rfind("/", 0, star) + 1
    try:
        pattern = os.fsdecode(unquote_to_bytes(uri[start:]))
    except UnicodeError:
        raise FilesError("bad_pattern", uri, "the URI contains characters that no file name can have") from None
    # A pattern with a slash is anchored at the directory; one without would match names at any depth.
    return uri[:start], f"./{pattern}"


class GlobTrees:
    """Calls `changed(key)` when an entry that matches the key's glob appears, changes or disappears."""

    def __init__(self, watcher: Watcher, changed: Callable[[str], Awaitable[None]]) -> None:
        self._watcher = watcher
        self._changed = changed
        self._globs: dict[str, TreeKey] = {}
        self._trees: dict[TreeKey, tuple[Tree, GlobsByKey]] = {}
        self._locks: WeakValueDictionary[TreeKey, anyio.Lock] = WeakValueDictionary()

    async def watch(self, key: str, place: Place, pattern: str, rooted: RootedFiles, owner: str = "") -> None:
        """Notify `key` of changes below `place` that match the glob `pattern`. A tree counts towards its first
        owner's quota.

        Raises FilesError with code `bad_pattern`, `outside_roots` for a link that leads out, and `too_many`.
        """
        if key in self._globs:
            return
        glob, patterns = Glob([pattern]), reachable_patterns(pattern)
        await self._watcher.run_in_thread(rooted.roots.outer(place), _require_inside, rooted, place)
        tree_key = (rooted.roots.mark, place.root_index, place.parts, patterns)
        # A second call must wait for the initial check that the first one has begun.
        async with self._locks.setdefault(tree_key, anyio.Lock()):
            if tree_key not in self._trees:
                await self._watch_tree(tree_key, place, patterns, rooted, owner)
            tree, globs_by_key = self._trees[tree_key]
        if tree.is_full and not globs_by_key:
            self._end(tree_key)
        if tree.is_full:
            raise FilesError("too_many", place.path, "there are too many files to watch", "Watch fewer of them.")
        globs_by_key.add(key, glob)
        self._globs[key] = tree_key

    def unwatch(self, key: str) -> None:
        """Stop the notifications of `key`, if it belongs to a glob."""
        tree_key = self._globs.pop(key, None)
        if tree_key is None:
            return
        globs_by_key = self._trees[tree_key][1]
        globs_by_key.remove(key)
        if not globs_by_key:
            self._end(tree_key)

    def affected_keys(self, uri: str) -> list[str]:
        """Return the keys of the globs that match the entry with this `file:` URI."""
        keys: list[str] = []
        for key, tree_key in self._globs.items():
            start = key[key.find("file:") :].partition("/./")[0] + "/"
            names = [os.fsdecode(unquote_to_bytes(name)) for name in uri.removeprefix(start).split("/")]
            if uri.startswith(start) and self._trees[tree_key][1].has(key, names):
                keys.append(key)
        return keys

    async def _watch_tree(
        self, tree_key: TreeKey, place: Place, patterns: Sequence[str], rooted: RootedFiles, owner: str
    ) -> None:
        globs_by_key = GlobsByKey(place.parts)

        async def report(events: list[Event]) -> None:
            for key in await self._watcher.run_in_thread(
                rooted.roots.outer(place), globs_by_key.affected_keys, events
            ):
                await self._changed(key)

        tree = await self._watcher.watch_tree(tree_key, place, patterns, report, rooted, owner)
        self._trees[tree_key] = tree, globs_by_key

    def _end(self, tree_key: TreeKey) -> None:
        del self._trees[tree_key]
        self._watcher.unwatch(tree_key)


def _require_inside(rooted: RootedFiles, place: Place) -> None:
    """Raise FilesError with code `outside_roots` if the place is outside the roots, or denied."""
    try:
        rooted.stat(place)
    except FilesError as error:
        if error.code in ("outside_roots", "denied"):
            raise rooted.roots.outside_error(place.path) from None


class GlobsByKey:
    """The keys that are notified of changes in one tree, which begins at `start`, each with its glob."""

    def __init__(self, start: Parts) -> None:
        self._start = len(start)
        self._globs: dict[str, Glob] = {}

    def __len__(self) -> int:
        return len(self._globs)

    def add(self, key: str, glob: Glob) -> None:
        """Notify `key` of changes that match `glob`."""
        self._globs[key] = glob

    def remove(self, key: str) -> None:
        """Remove the glob of `key`."""
        del self._globs[key]

    def has(self, key: str, names: Sequence[str]) -> bool:
        """Return True if the glob of `key` matches the entry at the path `names` below the start of the tree."""
        return _matches(self._globs[key], tuple(names[:-1]), names[-1:])

    def affected_keys(self, events: Sequence[Event]) -> list[str]:
        """Return the keys to notify of these events."""
        globs = list(self._globs.items())
        if len(globs) * len(events) > MAX_COMPARED:
            return [key for key, _ in globs]
        changed: dict[Parts, set[str]] = defaultdict(set)
        for event in events:
            *parents, name = event.place.parts[self._start :]
            changed[tuple(parents)].add(name)
        return [key for key, glob in globs if any(_matches(glob, *group) for group in changed.items())]


def _matches(glob: Glob, parents: Parts, names: Iterable[str]) -> bool:
    """Return True if the glob matches one of these names in the directory at `parents`."""
    states = glob.states_after(parents)
    return any(glob.accepts(glob.step(states, name)) for name in names)


class Listings:
    """Notifies clients that are limited to parts of the roots when the entries of these parts change.

    Clients don't announce that they no longer need these notifications, so only the most recently listed parts are
    watched."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self._listed: dict[str, int] = {}
        """The sets of parts by their mark, with the number of parts, most recently listed last."""

    async def watch(self, parts: RootedFiles, report: Callback) -> None:
        """Call `report` when an entry of a part appears, disappears or is renamed. Raises FilesError."""
        mark = parts.roots.mark
        count = self._listed.pop(mark, None)
        self._listed[mark] = len(parts.roots.paths)
        if count is not None:
            return
        if len(self._listed) > MAX_LISTED:
            self._end(next(iter(self._listed)))
        with ExitStack() as on_failure:
            # If this is cancelled, the next call watches these parts.
            on_failure.callback(self._end, mark)
            await self._watcher.watch_listing(mark, report, parts)
            on_failure.pop_all()

    def _end(self, mark: str) -> None:
        for index in range(self._listed.pop(mark, 0)):
            self._watcher.unwatch((mark, index))
