"""All tasks and mistakes, each server fresh: the costs of ours and of the peer, and what does not hold."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.checks.benchmarks import fetch_peers, postgres_peers, sqlite_peers
from tests.checks.benchmarks.peers import NPM
from tests.checks.tasks import fetch, filesystem, postgres, prompts, sqlite
from tests.checks.tasks.mistakes import Mistake, make_files, of_files, of_tables
from tests.checks.tasks.session import Refused, Session, opened
from tests.checks.tasks.task import Cost, Task, run
from tests.web_site import served

Command = Callable[[Path], list[str]]


class Side(NamedTuple):
    """The costs of the tasks with one server."""

    definitions: int
    costs: dict[str, Cost]


class Area(NamedTuple):
    """The tasks of one kind of server, ours and its peer."""

    name: str
    peer: str
    tasks: Sequence[Task]
    ours: Command
    theirs: Command | None

    def measure(self, folder: Path, *, ours: bool) -> Side:
        """Run all tasks with one server, in `folder`, which has to be empty. Raises Unavailable."""
        command = self.ours if ours else self.theirs
        assert command is not None
        with opened(command(folder)) as session:
            costs = {}
            for number, task in enumerate(self.tasks):
                script = task.ours if ours else task.theirs
                if script is not None:
                    costs[task.name] = run(task, script, session, folder / str(number))
            return Side(session.definitions(), costs)


def _files(folder: Path) -> list[str]:
    return [sys.executable, "-m", "servers.filesystem", "--allow-write", str(folder)]


def _database(folder: Path) -> Path:
    (folder / sqlite.DATABASE).touch()
    return folder / sqlite.DATABASE


def _library(folder: Path) -> list[str]:
    prompts.make_library(folder)
    return [sys.executable, "-m", "servers.prompts", "--allow-write", str(folder)]


@contextmanager
def areas() -> Iterator[tuple[Area, ...]]:
    """Give all areas, while the site is there that the tasks of fetch read."""
    with served(fetch.Pages) as address:
        yield (
            Area("filesystem", NPM.name, filesystem.TASKS, _files, NPM.stdio),
            Area(
                "sqlite", sqlite_peers.ARCHIVED.name, sqlite.TASKS,
                lambda folder: sqlite_peers.ours_command(_database(folder), "--allow-write"),
                lambda folder: sqlite_peers.archived_command(_database(folder)),
            ),
            Area(
                "postgres", postgres_peers.DBHUB_PACKAGE, postgres.TASKS,
                lambda folder: postgres_peers.ours_command(postgres.make_database(folder), "--allow-write"),
                lambda folder: postgres_peers.dbhub_command(folder, postgres.make_database(folder), writes=True),
            ),
            Area(
                "fetch", fetch_peers.OFFICIAL.name, fetch.tasks(address),
                fetch_peers.BUNDLE_PACKAGE.stdio, fetch_peers.OFFICIAL.stdio,
            ),
            Area("prompts", "", prompts.TASKS, _library, None),
        )  # fmt: skip


def mistakes(folder: Path) -> dict[str, str]:
    """Return by the names of mistakes why no right call came next; "" where the text of the error led to it."""
    (folder / "shop").mkdir(parents=True)
    make_files(folder / "files")
    sqlite.shop(folder / "shop")
    reasons = {}
    for listed, command in (
        (of_files(folder / "files"), _files(folder / "files")),
        (of_tables(), sqlite_peers.ours_command(folder / sqlite.DATABASE, "--allow-write")),
    ):
        with opened(command) as session:
            reasons.update({f"{mistake.server}: {mistake.name}": _recover(session, mistake) for mistake in listed})
    return reasons


def _recover(session: Session, mistake: Mistake) -> str:
    try:
        session.call(mistake.tool, **mistake.arguments)
    except Refused as refusal:
        text = str(refusal)
    else:
        return "it was no mistake"
    try:
        tool, arguments = mistake.mend(text)
        session.call(tool, **arguments)
    except (LookupError, Refused) as error:
        return str(error)
    return ""
