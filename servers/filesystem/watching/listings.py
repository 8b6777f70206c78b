"""Telling clients that work in parts of the roots when the list of what stands in these parts changes.

Nobody says when a client has lost its interest, so only the parts that were listed last are watched.
"""

from servers.filesystem.watching.watcher import Tell, Watcher
from shared.kit.rooted.files import RootedFiles

MAX_LISTED = 64
"""Sets of parts that are watched at once."""


class Listings:
    """The parts that were listed last."""

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
