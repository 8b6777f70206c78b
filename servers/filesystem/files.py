"""The files of one running server: what its tools work on, and who tells when they change."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import anyio
from anyio import from_thread, to_thread

from servers.common.documents.texts import MAX_BYTES, SIGN, may_be_document
from servers.common.files.denylist import Denylist
from servers.common.files.mounts import Mounts
from servers.common.files.narrowing import narrowed
from servers.common.files.rooted_files import RootedFiles
from servers.common.files.roots import Roots
from servers.common.files.small_reads import NarrowedSmallFiles, SmallFiles
from shared.program.files.entries import Place

from .errors import FilesError
from .history.recording import History, Recorder
from .read import binary, pages
from .read.binary import BytesRead
from .read.charsets import plain
from .read.documents import (
    Documents,
    chosen_pages,
    concerns_document,
    is_called_document,
    part_of_document,
)
from .read.pages import TextRead
from .read.parts import WHOLE, Part
from .watch.journal import Journal
from .watch.subscriptions import GlobTrees, Listings
from .watch.watcher import Watcher


class Turn(Protocol):
    """Waits until it is a client's turn for work in a thread, as `Context.turn` does."""

    def __call__(self, *, brief: bool) -> AbstractAsyncContextManager[None]:
        """`brief` work waits for no other."""


@dataclass(frozen=True, slots=True)
class Files:
    """The allowed directories, held open, and the watch over them; bytes that the text of a read may take."""

    beneath: RootedFiles
    small: SmallFiles
    watcher: Watcher
    globs: GlobTrees
    listings: Listings
    journal: Journal
    documents: Documents
    max_read: int
    not_offered: frozenset[str] = frozenset()
    """The names of tools that this server does not have, as it was started."""
    history: History | None = None
    """The journal of changes, where they are noted down."""

    def place(self, written: str) -> Place:
        """Where a path or a `file:` URI points. Raises FilesError."""
        return self.beneath.roots.place(written)

    def uri(self, place: Place) -> str:
        """The `file:` URI of a place."""
        return self.beneath.roots.uri(place)

    def recorder(self) -> Recorder:
        """What notes down the changes of one call."""
        return Recorder(self.history)

    def narrowed(self, uris: Sequence[str]) -> "Files":
        """These files as far as they are in the directories of the `file:` URIs. Blocks."""
        beneath = narrowed(self.beneath, uris)
        return replace(self, beneath=beneath, small=NarrowedSmallFiles(self.small, beneath.roots))

    def wrote(self, *places: Place) -> None:
        """Has `changes` tell at once of what was changed there."""
        for place in places:
            self.journal.wrote(self.beneath.roots.outer(place))

    def concerned(self, uri: str) -> list[str]:
        """The keys under which it is told that something was written to, made at, or taken away from this `file:`
        URI."""
        return [*self.watcher.concerned(uri), *self.globs.concerned(uri)]

    def is_listed(self, uri: str) -> bool:
        """Whether what has this `file:` URI stands directly in an allowed directory, and so among the resources."""
        roots = self.beneath.roots
        above = uri.rpartition("/")[0]
        return any(roots.uri(Place(index, (), "")).rstrip("/") == above for index in range(len(roots.paths)))

    def key(self, uri: str) -> str:
        """Under which key changes of `uri` are told to those who work in these directories."""
        return self.beneath.roots.mark + uri

    def gone(self) -> list[str]:
        """The directories that can't be reached any more, or are other ones by now. Blocks."""
        return [str(path) for index, path in enumerate(self.beneath.roots.paths) if not self.beneath.is_there(index)]

    async def read_text(self, place: Place, budget: int, turn: Turn, part: Part = WHOLE) -> TextRead:
        """A part of the text at `place`, `budget` bytes of JSON at most. Raises FilesError.

        At once where that is quick: a small file in UTF-8. Else in a thread, and where that has to look for a line
        from the start of a file of any size, in `turn`.
        """
        held = self.small.read(place)
        if held is None:
            check = from_thread.check_cancelled
            async with turn(brief=part.offset is None):
                return await to_thread.run_sync(pages.read_text, self.beneath, place, budget, part, check)
        if plain(held.data) is None:
            return await to_thread.run_sync(pages.text_in, held, place, budget, part)
        return pages.text_in(held, place, budget, part)

    async def read_any_text(self, place: Place, budget: int, turn: Turn, part: Part = WHOLE) -> TextRead:
        """A part of the text at `place`, of a document as Markdown. Raises FilesError."""
        is_called = part.encoding is None and is_called_document(place.written)
        if not (is_called or concerns_document(part)):
            try:
                return await self.read_text(place, budget, turn, part)
            except FilesError as error:
                if error.code != "not_text" or part.encoding is not None:
                    raise
                no_text = error
        else:
            no_text = None
        start = await self.read_bytes(place, SIGN, turn, 0)
        if may_be_document(start.data) or concerns_document(part):
            return await self._read_document(place, start.etag, budget, turn, part)
        if no_text is not None:
            raise no_text
        return await self.read_text(place, budget, turn, part)

    async def _read_document(self, place: Place, etag: str, budget: int, turn: Turn, part: Part) -> TextRead:
        async def body() -> bytes:
            return (await self.read_bytes(place, MAX_BYTES, turn)).data

        text = await self.documents.text(body, etag, place.written, chosen_pages(part, place.written))
        return part_of_document(text, etag, place.written, budget, part)

    async def read_bytes(
        self, place: Place, max_bytes: int, turn: Turn, offset: int | None = None, length: int | None = None
    ) -> BytesRead:
        """The bytes at `place`, or a part of them: at once or in a thread, as above. Raises FilesError."""
        held = self.small.read(place)
        if held is not None:
            return binary.bytes_of(held, place, max_bytes, offset, length)
        async with turn(brief=True):
            return await to_thread.run_sync(binary.read_bytes, self.beneath, place, max_bytes, offset, length)


@asynccontextmanager
async def open_files(
    paths: Sequence[Path],
    writable: bool | Sequence[bool],
    changed: Callable[[str], None],
    denylist: Denylist | None = None,
    max_read: int = 100_000,
    poll: bool = False,
) -> AsyncIterator[Files]:
    """Opens the directories, and watches what is asked for until the end. Raises ValueError for a bad directory.

    `writable` says of all directories, or of each in turn, whether files may be changed there. Without a `denylist`
    it is the built-in one. With `poll` changes are found by looking for them only.
    """

    async def tell(key: str) -> None:
        changed(key)

    beneath = RootedFiles(Roots(paths, writable, denylist))
    mounts = Mounts(beneath.roots.paths)
    # A system without a table of mounts has no way to tell, so its notices are believed in.
    reached = mounts.local if mounts.known else lambda _: True
    watcher = Watcher(beneath, tell, (lambda _: False) if poll else reached)
    journal, documents = Journal(beneath, watcher), Documents()
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watcher.run)
            tasks.start_soon(journal.run)
            globs, listings = GlobTrees(watcher, tell), Listings(watcher)
            small = SmallFiles(beneath, mounts)
            yield Files(beneath, small, watcher, globs, listings, journal, documents, max_read)
            tasks.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await documents.close()
        mounts.close()
        beneath.close()
