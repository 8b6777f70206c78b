"""A separate process that changes a database."""

import sys
from pathlib import Path

import anyio

SCRIPT = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], timeout=10, isolation_level=None)
for statement in sys.argv[2:]:
    connection.execute(statement)
"""


async def elsewhere(file: Path, *statements: str) -> None:
    """Runs the statements in a separate process, each in its own transaction."""
    await anyio.run_process([sys.executable, "-c", SCRIPT, str(file), *statements])
