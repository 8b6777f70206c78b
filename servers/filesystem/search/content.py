"""Searches files for lines that match a pattern (see `files` for the order of the files, `matcher` for the pattern).

Every reported line was read from a file opened below the root. As in most search tools, binary files are skipped:
those with a NUL at their start that are not UTF-16 or UTF-32.
"""

import os
import stat
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import Literal, NamedTuple, NotRequired

from typing_extensions import TypedDict

from servers.common.documents.texts import SIGNATURE_BYTES, may_be_document
from servers.common.files.descent import Descent, Names, descent
from servers.common.files.rooted_files import RootedFiles
from shared.program.files.entries import Handle, Place
from shared.text import display_name

from ..errors import FilesError
from ..names import add_uri
from ..read.charsets import UTF8
from ..read.documents import DOCUMENT_SUFFIXES
from .files import Scope, SearchProgress, Walk
from .lines import NO_HITS, Hit, ReadDocument, Reader, SearchedFile
from .matcher import Query
from .page import ByteBudget, Page, Position, decode_cursor, encode_cursor

Output = Literal["matches", "files", "counts"]

_BATCH_FILES = 64
"""Maximum number of small files that are searched together."""
_LINE_OVERHEAD_BYTES = 10
"""Size in bytes of a result line without its path and text."""


class SearchRequest(NamedTuple):
    """The query and the output format, with `context` lines before and after each match.

    `read_document` reads documents; if it is None, they are not searched.
    """

    query: Query
    output: Output = "matches"
    context: int = 0
    read_document: ReadDocument | None = None


class LineMatch(TypedDict):
    """A matching line, its number from 1, and the lines around it."""

    line: int
    text: str
    before: NotRequired[list[str]]
    after: NotRequired[list[str]]


class FileMatches(TypedDict):
    """A file with matches: its displayed path, relative to the directory that is searched; its charset unless it is
    UTF-8; and the requested count or matches."""

    path: str
    charset: NotRequired[str]
    count: NotRequired[int]
    matches: NotRequired[list[LineMatch]]


class ContentMatches(TypedDict):
    """The files with matches, in walk order.

    `stopped` is None, or the reason that there may be more: limit, size, budget, time or cancelled; `cursor`
    continues from there. The counts are: `searched` files; `skipped` files that are binary or too large; `partial`
    documents with parts left out; `documents` whose text was not requested; `ignored` entries left out because of a
    .gitignore; `hidden` entries left out; `unreadable` files and directories.
    """

    files: list[FileMatches]
    stopped: str | None
    cursor: str | None
    searched: int
    skipped: int
    partial: int
    documents: int
    ignored: int
    hidden: int
    unreadable: int


def search_content(
    rooted: RootedFiles, place: Place, scope: Scope, request: SearchRequest, page: Page, progress: SearchProgress
) -> ContentMatches:
    """Return the matching lines in the file at `place` or the files below it, or only which files have such lines.

    Raises FilesError.
    """
    after = None if page.cursor is None else decode_cursor(page.cursor)
    run = _Search(request, page, progress, after)
    if stat.S_ISREG(rooted.stat(place).st_mode):
        return run.search_file(rooted, place, after)
    return run.search_tree(rooted, place, Walk(rooted, place, scope, progress), after)


class _Search:
    """A running search: its results so far, and the space left on the page."""

    def __init__(self, request: SearchRequest, page: Page, progress: SearchProgress, after: Position | None) -> None:
        self._request = request
        query = request.query
        # The next page begins after the last line of the previous one, so its hits are selected by line number.
        needs_lines = request.output == "matches" or (after is not None and after.number > 0)
        self._reader = Reader(query, request.context, progress, request.read_document, needs_lines=needs_lines)
        self._remaining = page.limit
        self._budget = ByteBudget(page.max_bytes)
        self._progress = progress
        self._files: list[FileMatches] = []
        self._searched = self._skipped = self._unreadable = self._partial = self._documents = 0
        self._stopped: str | None = None

    def search_file(self, rooted: RootedFiles, place: Place, after: Position | None) -> ContentMatches:
        """Search one file."""
        path = place.parts[-1:]
        with rooted.open_file(place) as handle:
            position = self._search(handle, path, lambda _: rooted.roots.uri(place), after)
        return self._result(self._stopped, position or after)

    def search_tree(self, rooted: RootedFiles, place: Place, walk: Walk, after: Position | None) -> ContentMatches:
        """Search the files below a directory."""
        position = None
        with descent(rooted, place) as opened:
            for path, entries in walk.directories(opened, after):
                names = [name for name, kind in entries if kind == "file"]
                position = self._search_directory(opened, walk, path, names, after)
        result = self._result(walk.stopped, position or walk.position() or after)
        result["ignored"], result["hidden"] = walk.ignored, walk.hidden
        result["unreadable"] += walk.unreadable
        return result

    def _result(self, stopped: str | None, position: Position | None) -> ContentMatches:
        return ContentMatches(
            files=self._files,
            stopped=stopped,
            cursor=encode_cursor(position) if stopped and position else None,
            searched=self._searched,
            skipped=self._skipped,
            partial=self._partial,
            documents=self._documents,
            ignored=0,
            hidden=0,
            unreadable=self._unreadable,
        )

    def _search_directory(
        self, opened: Descent, walk: Walk, path: Names, names: list[str], after: Position | None
    ) -> Position | None:
        """Search files of one directory.

        Return the position of the last line if the search stops in one of them, otherwise None.
        """
        read_small, limit, stop_reason = opened.read_small, self._reader.small_limit, self._progress.stop_reason
        texts: dict[str, bytes] = {}
        position = None
        for name in names:
            # This runs for each of many thousands of files, so small files take the shortest way.
            try:
                data = read_small(name, limit)
            except OSError:
                data = None
            if data is not None and not may_be_document(data):
                texts[name] = data
                if len(texts) < _BATCH_FILES and stop_reason() is None:
                    continue
                position = self._search_texts(texts, walk, path, opened.uri, after)
            else:
                position = self._search_texts(texts, walk, path, opened.uri, after)
                if self._stopped is None:
                    position = self._search_by_itself(opened, (*path, name), after)
            if self._stopped is None:
                walk.finish(path, name)
                self._stopped = stop_reason()
            if self._stopped is not None:
                break
            texts = {}
        else:
            position = self._search_texts(texts, walk, path, opened.uri, after)
        walk.stopped = self._stopped
        return position

    def _search_texts(
        self, texts: dict[str, bytes], walk: Walk, path: Names, uri: Callable[[Names], str], after: Position | None
    ) -> Position | None:
        """Search `texts`, the contents of small files of one directory by name. Return the same as `_search`."""
        names = list(texts)
        first = 0
        for index in self._reader.candidates([*texts.values()]):
            name = names[index]
            self._searched += index - first
            if index:
                walk.finish(path, names[index - 1])
            position = self._report(self._reader.hits_in(texts[name]), (*path, name), uri, after)
            if self._stopped is not None:
                return position
            first = index + 1
        self._searched += len(names) - first
        if names:
            walk.finish(path, names[-1])
        return None

    def _search_by_itself(self, opened: Descent, path: Names, after: Position | None) -> Position | None:
        try:
            handle = opened.open_file(path[-1])
            try:
                return self._search(handle, path, opened.uri, after)
            finally:
                os.close(handle.descriptor)
        except (FilesError, OSError):
            self._unreadable += 1
            return None

    def _search(
        self, handle: Handle, path: Names, uri: Callable[[Names], str], after: Position | None
    ) -> Position | None:
        """Search one file after the position `after`, the last reported line.

        Return the position of the last line if the search stops in this file, otherwise None.
        """
        if path[-1].lower().endswith(DOCUMENT_SUFFIXES) and self._request.read_document is None:
            self._documents += may_be_document(os.read(handle.descriptor, SIGNATURE_BYTES))
            os.lseek(handle.descriptor, 0, os.SEEK_SET)
        return self._report(self._reader.hits(handle), path, uri, after)

    def _report(
        self, searched: SearchedFile | None, path: Names, uri: Callable[[Names], str], after: Position | None
    ) -> Position | None:
        """Report the matches in a file. Return the same as `_search`."""
        if searched is None:
            self._stopped = self._progress.stop_reason()
            self._skipped += self._stopped is None
            return None
        self._searched += 1
        if searched is NO_HITS:
            return None
        self._partial += searched.is_partial
        hits = searched.hits
        if after is not None and after.parts == path:
            hits = (hit for hit in hits if hit.number > after.number)
        hit = next(hits, None)
        if hit is None:
            self._stopped = self._progress.stop_reason()
            return None
        file = FileMatches(path=add_uri(display_name("/".join(path)), partial(uri, path)))
        if searched.charset != UTF8.name:
            file["charset"] = searched.charset
        if self._request.output == "matches":
            return self._report_lines(file, path, chain([hit], hits))
        if self._request.output == "counts":
            file["count"] = 1 + sum(1 for _ in hits)
            self._stopped = self._progress.stop_reason()
        if self._stopped is None and self._fits(_LINE_OVERHEAD_BYTES, file["path"]):
            self._files.append(file)
        return None

    def _report_lines(self, file: FileMatches, path: Names, hits: Iterator[Hit]) -> Position | None:
        """Report the matching lines of a file. Return the same as `_search`."""
        last_number = last_shown = 0
        file["matches"] = []
        for hit in hits:
            line = LineMatch(line=hit.number, text=hit.text())
            if self._request.context:
                line["before"] = hit.lines_before(self._request.context)
                line["after"] = hit.lines_after(self._request.context)
            # A match may span several lines. Each is shown with its path, but only once.
            lines = [*line.get("before", ()), *line["text"].split("\n"), *line.get("after", ())]
            first = hit.number - len(line.get("before", ()))
            new_lines = lines[max(last_shown + 1 - first, 0) :]
            if not self._fits(len(new_lines) * _LINE_OVERHEAD_BYTES, *[file["path"]] * len(new_lines), *new_lines):
                break
            last_shown = max(last_shown, first + len(lines) - 1)
            if not last_number:
                self._files.append(file)
            file["matches"].append(line)
            last_number = hit.number
        else:
            self._stopped = self._progress.stop_reason()
        return Position(path, last_number) if last_number and self._stopped else None

    def _fits(self, overhead: int, *texts: str) -> bool:
        if self._remaining == 0:
            self._stopped = "limit"
        elif not self._budget.take(overhead, *texts):
            self._stopped = "size"
        else:
            self._remaining -= 1
        return self._stopped is None
