"""The state of one running server: the allowed directories, and the objects that read, watch and record files."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import anyio
from anyio import from_thread, to_thread

from servers.common.documents.texts import MAX_BYTES, SIGNATURE_BYTES, may_be_document
from servers.common.files.denylist import Denylist
from servers.common.files.mounts import Mounts
from servers.common.files.narrowing import narrow
from servers.common.files.rooted_files import RootedFiles
from servers.common.files.roots import Roots
from servers.common.files.small_reads import NarrowedSmallFiles, SmallFiles
from shared.concurrency import run_in_turns
from shared.program.files.entries import Place
from shared.steps import Steps

from .errors import FilesError
from .history import recording
from .read import binary, pages
from .read.binary import BytesRead
from .read.charsets import decode_plain
from .read.documents import Documents, has_document_name, is_document_part, part_of_document, selected_pages
from .read.pages import TextRead
from .read.parts import WHOLE, Part
from .watch.journal import STEP_PLACES, Journal
from .watch.subscriptions import GlobTrees, Listings
from .watch.watcher import Watcher


class Turn(Protocol):
    """Waits for a client's turn to work in a thread, like `Context.turn`."""

    def __call__(self, *, brief: bool) -> AbstractAsyncContextManager[None]:
        """Wait for the turn; `brief` work does not wait for other work."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Files:
    """The allowed directories, which are open, and the objects that read, watch and record the files in them.
    `max_read` is the maximum size, in bytes of JSON, of the text that one read returns."""

    rooted: RootedFiles
    small: SmallFiles
    watcher: Watcher
    globs: GlobTrees
    listings: Listings
    journal: Journal
    documents: Documents
    max_read: int
    not_offered: frozenset[str] = frozenset()
    """The names of tools that are not offered with the settings of this server."""
    history: "recording.History | None" = None
    """The journal of changes for undo; None if changes are not recorded."""

    def place(self, path_or_uri: str) -> Place:
        """Return the place of a path or a `file:` URI. Raises FilesError."""
        return self.rooted.roots.place(path_or_uri)

    def uri(self, place: Place) -> str:
        """Return the `file:` URI of a place."""
        return self.rooted.roots.uri(place)

    def recorder(self) -> "recording.Recorder":
        """Return a recorder for the changes of one call."""
        return recording.Recorder(self.history)

    def narrow(self, uris: Sequence[str]) -> "Files":
        """Return a copy limited to the directories of the `file:` URIs. Blocks."""
        rooted = narrow(self.rooted, uris)
        return replace(self, rooted=rooted, small=NarrowedSmallFiles(self.small, rooted.roots))

    def report_changes(self, *places: Place) -> None:
        """Report changes at these places to `changes` at once."""
        for place in places:
            self.journal.add_write(self.rooted.roots.outer(place))

    async def report_all_changes(self, places: Sequence[Place]) -> None:
        """Report changes at many places like `report_changes`, in steps between which other tasks run. All are
        reported even if the caller is cancelled."""

        def steps() -> Steps[None]:
            for start in range(0, len(places), STEP_PLACES):
                self.report_changes(*places[start : start + STEP_PLACES])
                yield

        with anyio.CancelScope(shield=True):
            await run_in_turns(steps())

    def affected_keys(self, uri: str) -> list[str]:
        """Return the keys to notify when the entry at this `file:` URI has been written, created or removed."""
        return [*self.watcher.affected_keys(uri), *self.globs.affected_keys(uri)]

    def is_listed(self, uri: str) -> bool:
        """Return True if a `file:` URI is directly in an allowed directory, and is therefore listed as a resource."""
        roots = self.rooted.roots
        parent_uri = uri.rpartition("/")[0]
        return any(roots.uri(Place(index, (), "")).rstrip("/") == parent_uri for index in range(len(roots.paths)))

    def key(self, uri: str) -> str:
        """Return the key for notifications about `uri` to the clients of these directories."""
        return self.rooted.roots.mark + uri

    def missing_roots(self) -> list[str]:
        """Return the directories that can no longer be reached or have been replaced. Blocks."""
        return [
            str(path) for index, path in enumerate(self.rooted.roots.paths) if not self.rooted.is_reachable(index)
        ]

    async def read_text(self, place: Place, budget: int, turn: Turn, part: Part = WHOLE) -> TextRead:
        """Return part of the text at `place`, at most `budget` bytes of JSON. Raises FilesError.

        A small UTF-8 file is read at once, other files in a thread. The thread waits for its `turn` if it has to
        search for a line from the start of the file, since the size of the file is not limited.
        """
        small_file = self.small.read(place)
        if small_file is None:
            check = from_thread.check_cancelled
            async with turn(brief=part.offset is None):
                return await to_thread.run_sync(pages.read_text, self.rooted, place, budget, part, check)
        text = decode_plain(small_file.data)
        if text is None:
            return await to_thread.run_sync(pages.read_small_text, small_file, place, budget, part)
        return pages.read_small_text(small_file, place, budget, part, text)

    def read_at_once(self, path: str, budget: int) -> TextRead | None:
        """Return the whole text of a small UTF-8 file, if it fits into `budget` bytes of JSON; None for any other
        file, and for one whose name is that of a document. Raises FilesError."""
        if has_document_name(path):
            return None
        place = self.place(path)
        small_file = self.small.read(place)
        text = None if small_file is None else decode_plain(small_file.data)
        if small_file is None or text is None:
            return None
        read = pages.read_small_text(small_file, place, budget, plain=text)
        return None if read.truncated else read

    async def read_any_text(self, place: Place, budget: int, turn: Turn, part: Part = WHOLE) -> TextRead:
        """Return part of the text at `place`; documents are converted to Markdown. Raises FilesError."""
        has_name = part.encoding is None and has_document_name(place.path)
        if not (has_name or is_document_part(part)):
            try:
                return await self.read_text(place, budget, turn, part)
            except FilesError as error:
                if error.code != "not_text" or part.encoding is not None:
                    raise
                not_text_error = error
        else:
            not_text_error = None
        start = await self.read_bytes(place, SIGNATURE_BYTES, turn, 0)
        if may_be_document(start.data) or is_document_part(part):
            if start.size > MAX_BYTES:
                reason = f"has {start.size:,} bytes; the limit for documents is {MAX_BYTES:,}"
                raise FilesError("too_large", place.path, reason)

            async def body() -> bytes:
                return (await self.read_bytes(place, MAX_BYTES, turn)).data

            text = await self.documents.text(body, start.etag, place.path, selected_pages(part, place.path))
            return part_of_document(text, start.etag, place.path, budget, part)
        if not_text_error is not None:
            raise not_text_error
        return await self.read_text(place, budget, turn, part)

    async def read_bytes(
        self, place: Place, max_bytes: int, turn: Turn, offset: int | None = None, length: int | None = None
    ) -> BytesRead:
        """Return the bytes at `place`, or a part of them. A small file is read at once, others in a thread.

        Raises FilesError.
        """
        small_file = self.small.read(place)
        if small_file is not None:
            return binary.bytes_of(small_file, place, max_bytes, offset, length)
        async with turn(brief=True):
            return await to_thread.run_sync(binary.read_bytes, self.rooted, place, max_bytes, offset, length)


@asynccontextmanager
async def open_files(
    paths: Sequence[Path],
    writable: bool | Sequence[bool],
    on_change: Callable[[str], None],
    denylist: Denylist | None = None,
    max_read: int = 100_000,
    poll: bool = False,
) -> AsyncIterator[Files]:
    """Open the directories, and watch the subscribed files until the context ends. Raises ValueError for a bad
    directory.

    `writable` is True if files may be changed, for all directories or for each in turn. `denylist` defaults to the
    built-in list. With `poll`, changes are only found by polling.
    """

    async def report(key: str) -> None:
        on_change(key)

    rooted = RootedFiles(Roots(paths, writable, denylist))
    mounts = Mounts(rooted.roots.paths)
    # Without a mount table, local directories can't be recognized, so all of them count as local.
    is_local = mounts.is_local if mounts.is_known else lambda _: True
    watcher = Watcher(rooted, report, (lambda _: False) if poll else is_local)
    journal, documents = Journal(rooted, watcher), Documents()
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watcher.run)
            tasks.start_soon(journal.run)
            globs, listings = GlobTrees(watcher, report), Listings(watcher)
            small = SmallFiles(rooted, mounts)
            yield Files(rooted, small, watcher, globs, listings, journal, documents, max_read)
            tasks.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await documents.close()
        mounts.close()
        rooted.close()
