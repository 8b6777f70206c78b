"""A task: work whose outcome can be checked, and the calls of an expert with each server."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.checks.tasks.session import Session

Script = Callable[[Session, Path], str]
"""Does the work with one server, in a folder of its own; returns the answer for the user."""


class Task(NamedTuple):
    """One task."""

    name: str
    prepare: Callable[[Path], object]
    """Makes what the task is about, in an empty folder."""
    ours: Script
    theirs: Script | None
    """With the peer; None where it has no tool for this."""
    verify: Callable[[Path, str], bool]
    """Whether the folder and the answer are as they should be."""


class Cost(NamedTuple):
    """The cost of a task."""

    calls: int
    size: int
    """Bytes of the results."""
    verified: bool


def run(task: Task, script: Script, session: Session, folder: Path) -> Cost:
    """Do the task in `folder`, which is made for it."""
    folder.mkdir(parents=True)
    task.prepare(folder)
    calls, size = session.calls, session.size
    answer = script(session, folder)
    return Cost(session.calls - calls, session.size - size, task.verify(folder, answer))
