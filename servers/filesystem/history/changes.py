"""A change of files and its steps, as the journal records them."""

from typing import NamedTuple

from servers.filesystem.history.images import Image
from servers.filesystem.history.states import State

MAX_STEPS = 10_000
"""Largest number of paths in one change."""


class NotRecorded(Exception):
    """A change can't be recorded; the message gives the reason."""


class Step(NamedTuple):
    """The change of one path: the state before and after, and the earlier contents of a file. With `destination`, the
    entry at `path` is moved there, with all its contents.
    """

    path: str
    before: State
    after: State
    image: Image | None = None
    destination: str | None = None

    @property
    def paths(self) -> list[str]:
        """The paths that the step concerns."""
        return [self.path] if self.destination is None else [self.path, self.destination]


class Change(NamedTuple):
    """A change: its number, its time in seconds since 1970, and its kind; `undoes` is the number of the change that
    it undoes, `undone_by` that of the change that undid it; `paths` are the paths it concerns.

    It is `pending` while it is being made, then `done`, or `interrupted`, with the steps that were made.
    """

    number: int
    time: float
    act: str
    status: str
    run: str
    undoes: int | None
    undone_by: int | None
    paths: tuple[str, ...] = ()
