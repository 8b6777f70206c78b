"""Changes to files and their steps, as the journal records them."""

from typing import NamedTuple

from .images import Image
from .states import State

MAX_STEPS = 10_000
"""Maximum number of paths in one change."""


class NotRecorded(Exception):
    """Raised if a change can't be recorded; the message gives the reason."""


class Step(NamedTuple):
    """The change of one path: its states before and after the change, and, for a file, the `image` of its earlier
    contents. With `destination`, the entry at `path` was moved there with all its contents.
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
    """A change: its number, its time in seconds since 1970, its kind (`act`) and its `paths`. `undoes` is the number
    of the change that it undoes, `undone_by` the number of the change that undid it.

    `run` identifies the process that made the change (see `Journal.run`). The `status` is `pending` while the change
    is being made, then `done`, or `interrupted` if only some of its steps were made; the others are then deleted.
    """

    number: int
    time: float
    act: str
    status: str
    run: str
    undoes: int | None
    undone_by: int | None
    paths: tuple[str, ...] = ()
