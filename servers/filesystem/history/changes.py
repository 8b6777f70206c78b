"""A change of files and its steps, as the journal notes them down."""

from typing import NamedTuple

from servers.filesystem.history.images import Image
from servers.filesystem.history.states import State

MAX_STEPS = 10_000
"""Paths that one change may have."""


class NotRecorded(Exception):
    """A change can't be noted down: the message says why."""


class Step(NamedTuple):
    """What a change makes of one path: the state before and after, and what a file held before. With `destination`
    what is at `path` is moved there, with all that it holds."""

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
    """A change: its number, when it was made in seconds since 1970, and how; `undoes` is the number of the change
    that it takes back, `undone_by` that of the one that has taken it back; `paths` are what it concerns.

    It is `pending` while it is made, then `done`, or `interrupted`, with the steps that were made.
    """

    number: int
    time: float
    act: str
    status: str
    run: str
    undoes: int | None
    undone_by: int | None
    paths: tuple[str, ...] = ()
