"""Finding files by name: a glob over the paths relative to the start (see `walking` for their order)."""

from functools import partial

from typing_extensions import TypedDict

from servers.filesystem.finding import cursors
from servers.filesystem.finding.control import Control
from servers.filesystem.finding.room import Page, Room
from servers.filesystem.finding.walking import Scope, Walk
from servers.filesystem.names import told
from shared.kit.rooted.descent import descent
from shared.kit.rooted.entries import Place
from shared.kit.rooted.files import RootedFiles
from shared.kit.text import displayed

_OVERHEAD = 12
"""Bytes of the line of a match besides its path."""


class Match(TypedDict):
    """A file found: its path relative to the start as told in a result, and its kind."""

    path: str
    kind: str


class Found(TypedDict):
    """The matches in walk order: a directory's own entries before those below them.

    `stopped` is None, or why there may be more: limit, size, budget, time or cancelled; `cursor` goes on from there.
    `ignored` counts what was left out for a .gitignore, `unreadable` directories that could not be read.
    """

    matches: list[Match]
    stopped: str | None
    cursor: str | None
    ignored: int
    unreadable: int


def search_files(beneath: RootedFiles, place: Place, scope: Scope, page: Page, control: Control) -> Found:
    """The files and directories below `place` that match. Raises FilesError."""
    after = None if page.cursor is None else cursors.read(page.cursor)
    walk, room = Walk(beneath, place, scope, control), Room(page.max_bytes)
    matches: list[Match] = []
    with descent(beneath, place) as below:
        for path, kind in walk.entries(below, after):
            if len(matches) == page.limit:
                walk.stopped = "limit"
                break
            shown = told(displayed("/".join(path)), partial(below.uri, path))
            if not room.take(_OVERHEAD, shown):
                walk.stopped = "size"
                break
            matches.append(Match(path=shown, kind=kind))
    reached = walk.position() or after
    cursor = cursors.written(reached) if walk.stopped and reached else None
    return Found(
        matches=matches, stopped=walk.stopped, cursor=cursor, ignored=walk.ignored, unreadable=walk.unreadable
    )
