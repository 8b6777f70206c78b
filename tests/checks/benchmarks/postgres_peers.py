"""The PostgreSQL servers that are compared, and how each is started for one database."""

import sys
from pathlib import Path

from tests import npm
from tests.checks.benchmarks.sqlite_peers import (
    DBHUB_PACKAGE,
    TOOLBOX_FOLDER,
    TOOLBOX_PACKAGE,
    start_dbhub,
    start_toolbox,
)

__all__ = ["DBHUB_PACKAGE", "SECONDS", "dbhub_command", "ours_command", "toolbox_command", "versions"]

DBHUB_FOLDER = Path(__file__).resolve().parent / "postgres"
SECONDS = 1
"""That a statement may take, where a server can be told."""

# It has neither a limit of time of its own nor a way to allow reading alone: an operator can ask PostgreSQL for both.
_TOOLBOX_FILE = """
kind: source
name: data
type: postgres
host: 127.0.0.1
port: {port}
database: {database}
user: {user}
password: "{password}"
queryParams:
  statement_timeout: "{seconds}000"
  default_transaction_read_only: "on"
---
kind: tool
name: execute_sql
type: postgres-execute-sql
source: data
description: Run a statement.
"""


def ours_command(url: str, *options: str) -> list[str]:
    """How ours is started."""
    return [sys.executable, "-m", "servers.postgres", "--timeout", str(SECONDS), *options, url]


def dbhub_command(folder: Path, url: str, *, writes: bool = False) -> list[str]:
    """How dbhub is started, with its settings in a file of `folder`. Raises Unavailable."""
    return start_dbhub(DBHUB_FOLDER, folder / "dbhub.toml", url, writes=writes)


def toolbox_command(folder: Path, port: int, database: str, user: str, password: str) -> list[str]:
    """How Toolbox is started, with its settings in a file of `folder`. Raises Unavailable."""
    facts = {"port": port, "database": database, "user": user, "password": password, "seconds": SECONDS}
    return start_toolbox(folder / "toolbox.yaml", _TOOLBOX_FILE.format(**facts))


def versions() -> dict[str, str]:
    """The versions that are pinned here, by package."""
    return {
        DBHUB_PACKAGE: npm.pinned(DBHUB_FOLDER)[DBHUB_PACKAGE],
        TOOLBOX_PACKAGE: npm.pinned(TOOLBOX_FOLDER)[TOOLBOX_PACKAGE],
    }
