"""Undo after killed processes, and with several processes and other programs that change the same files."""

import multiprocessing
import os
import random
import signal
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from servers.common.files.rooted_files import RootedFiles
from servers.common.files.roots import Roots
from servers.filesystem.edit.edit import FileEdits, edit_files
from servers.filesystem.edit.replacements import Edit
from servers.filesystem.errors import FilesError
from servers.filesystem.history.recording import History, HistoryOptions, Recorder
from servers.filesystem.undo.undoing import find_changes, undo_change
from tests.servers.filesystem.undo.trees import fill, make, tree_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

KILLS = 50
NAMES = ["a", "b", "d", "d/a", "d/e", "d/e/f", "link", "new", "new/one"]
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["tests.checks.filesystem.test_undo"])


def opened(folder: Path) -> tuple[RootedFiles, History]:
    return RootedFiles(Roots([folder / "root"], writable=True)), History(
        HistoryOptions(folder / "undo", 64 * 1024 * 1024, 7)
    )


def act(chosen: random.Random) -> tuple[str, ...]:
    kind = chosen.choice(["write", "append", "edit", "create_directory", "move", "copy", "delete"])
    if kind in ("write", "append"):
        return kind, chosen.choice(NAMES), chosen.choice(["one\n", "two\none\n", "large"])
    return kind, *chosen.sample(NAMES, 1 if kind in ("create_directory", "delete") else 2)


def change_for_ever(folder: Path, seed: int, ready: Connection) -> None:
    files, undo = opened(folder)
    chosen = random.Random(seed)
    undo.journal(files)
    ready.send_bytes(b"")
    while True:
        make(files, act(chosen), Recorder(undo))
        if chosen.random() < 0.2:
            changes = find_changes(undo, files, None, 0)
            if changes:
                undo_change(undo, files, changes[0])


def without_leftovers(folder: Path) -> dict[str, tuple]:
    """The tree without what a process that was killed may leave."""
    return {path: held for path, held in tree_of(folder).items() if ".mcp-" not in path}


def undo_all(folder: Path) -> int:
    files, undo = opened(folder)
    try:
        changes = find_changes(undo, files, None, 0)
        for change in changes:
            undo_change(undo, files, change)
        return len(changes)
    finally:
        undo.close()
        files.close()


@pytest.mark.parametrize("seed", range(KILLS))
def test_changes_of_a_killed_process_are_undone_exactly(seed: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "root").mkdir()
        fill(folder / "root")
        before = tree_of(folder / "root")
        receiver, sender = CONTEXT.Pipe(duplex=False)
        process = CONTEXT.Process(target=change_for_ever, args=(folder, seed, sender))
        process.start()
        receiver.recv_bytes()
        time.sleep(random.Random(seed).random() * 0.4)
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        count = undo_all(folder)
        assert without_leftovers(folder / "root") == before, count


EDITS = 60
"""By each of the processes."""
LATE = 0.01
"""Seconds: half of the time for which a program is waited for that has a replaced file open."""


def edit_and_undo(folder: Path, mark: str, done: Connection) -> None:
    """Adds a line after another, and takes back each third one where that is possible; tells which lines remain."""
    files, history = opened(folder)
    place = files.roots.place("shared")
    remaining = set()
    for number in range(EDITS):
        line = f"{mark}{number}"
        recorder = Recorder(history)
        edit_files(files, [FileEdits(place, [Edit("start\n", f"start\n{line}\n")])], recorder=recorder)
        assert not recorder.note
        remaining.add(line)
        if number % 3 == 0:
            last = find_changes(history, files, None, None)[0]
            try:
                undo_change(history, files, last)
            except FilesError:
                continue
            # Which may be one of the other process.
            done.send(f"undid {last.number}")
    done.send(remaining)


def test_two_processes_and_another_program_lose_nothing(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    file = tmp_path / "root" / "shared"
    file.write_text("start\n")
    pipes = [CONTEXT.Pipe(duplex=False) for _ in range(2)]
    processes = [
        CONTEXT.Process(target=edit_and_undo, args=(tmp_path, mark, sender))
        for mark, (_, sender) in zip("ab", pipes, strict=True)
    ]
    for process, (_, sender) in zip(processes, pipes, strict=True):
        process.start()
        sender.close()
    theirs, late = [], set()
    while any(process.is_alive() for process in processes):
        theirs.append(f"theirs{len(theirs)}")
        began = time.monotonic()
        with file.open("a") as editor:
            editor.write(f"{theirs[-1]}\n")
        # On a busy machine it may be held up for longer.
        if time.monotonic() - began > LATE:
            late.add(theirs[-1])
        time.sleep(0.005)
    written: set[str] = set()
    undone: list[int] = []
    for receiver, _ in pipes:
        while isinstance(message := receiver.recv(), str):
            undone.append(int(message.split()[1]))
        written |= message
    files, history = opened(tmp_path)
    journal = history.journal(files)
    taken_back = set()
    for change in undone:
        (step,) = journal.steps(change)
        before, after = (journal.content(state.content) for state in (step.before, step.after))
        taken_back |= {*(after or b"").decode().split()} - {*(before or b"").decode().split()}
    lines = [line for line in file.read_text().split() if line not in late]
    assert sorted(lines) == sorted({"start", *theirs, *written} - taken_back - late)
    history.close()
    files.close()
