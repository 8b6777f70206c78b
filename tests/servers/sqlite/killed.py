"""Programs that are killed while they change a database."""

import random
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

from servers.sqlite.engine.database import Database

__all__ = ["ALL", "ROWS", "TOLD", "kill_in_midwrite", "leave_hot_journal", "make", "values"]

ROWS = 3_000
ALL = "SELECT value, count(*) FROM rows GROUP BY value"
TOLD = "a program was killed while it changed the database"
"""The error of a read without write access."""

# With such a small cache, SQLite writes to the file before the commit.
_WRITER = """
import os, signal, sqlite3, sys
path, mode, forever = sys.argv[1:]
connection = sqlite3.connect(path, isolation_level=None)
for pragma in (f"journal_mode = {mode}", "cache_size = 5", "synchronous = OFF"):
    connection.execute(f"PRAGMA {pragma}")
print("begun", flush=True)
while True:
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("UPDATE rows SET value = value + 1")
    if forever != "True":
        os.kill(os.getpid(), signal.SIGKILL)
    connection.execute("COMMIT")
"""


async def values(database: Database) -> list[tuple[int, int]]:
    """Returns each value of the rows with its count."""
    counts: list[tuple[int, int]] = await database.read(lambda connection, _: connection.execute(ALL).fetchall())
    return counts


def make(file: Path, mode: str = "delete") -> Path:
    """Makes a database whose rows all have the same value."""
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(f"PRAGMA journal_mode = {mode}")
        connection.execute("CREATE TABLE rows (value INTEGER, padding TEXT)")
        connection.executemany("INSERT INTO rows VALUES (?, ?)", [(0, "x" * 100)] * ROWS)
    return file


def leave_hot_journal(file: Path, mode: str = "delete") -> None:
    """Kills a program that changed all rows, before its commit. In WAL mode this leaves a log."""
    _start(file, mode, forever=False).wait()
    assert Path(f"{file}-{'wal' if mode == 'wal' else 'journal'}").stat().st_size > 0


def kill_in_midwrite(file: Path, mode: str, chance: random.Random) -> None:
    """Kills a program that changes all rows repeatedly, at a random moment."""
    process = _start(file, mode, forever=True)
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(chance.uniform(0, 0.02))  # a random moment of its work
    process.kill()
    process.wait()
    process.stdout.close()


def _start(file: Path, mode: str, *, forever: bool) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-I", "-S", "-c", _WRITER, str(file), mode, str(forever)]
    return subprocess.Popen(command, stdout=subprocess.PIPE if forever else subprocess.DEVNULL)
