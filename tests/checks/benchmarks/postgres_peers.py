"""The PostgreSQL servers that are compared, and how each is started for one database."""

import sys
from functools import cache
from pathlib import Path

from tests import npm
from tests.checks.benchmarks.sqlite_peers import DBHUB_PACKAGE

__all__ = ["DBHUB_PACKAGE", "SECONDS", "dbhub_command", "ours_command", "toolbox_command", "versions"]

DBHUB_FOLDER = Path(__file__).resolve().parent / "postgres"
TOOLBOX_FOLDER = Path(__file__).resolve().parent / "toolbox"
TOOLBOX_PACKAGE = "@toolbox-sdk/server"
SECONDS = 1
"""That a statement may take, where a server can be told."""

_DBHUB_FILE = """
[[sources]]
id = "data"
dsn = "{url}"
query_timeout = {seconds}

[[tools]]
name = "execute_sql"
source = "data"
readonly = {readonly}

[[tools]]
name = "search_objects"
source = "data"
"""
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


@cache
def _dbhub_program() -> list[str]:
    node = npm.find_node()
    npm.require(node, DBHUB_FOLDER, "dbhub")
    return [str(node), str(DBHUB_FOLDER / "node_modules" / DBHUB_PACKAGE / "dist" / "index.js")]


@cache
def _toolbox_program() -> list[str]:
    """Its program for this machine, without the Node that starts it otherwise."""
    npm.require(npm.find_node(), TOOLBOX_FOLDER, "Toolbox")
    found = sorted((TOOLBOX_FOLDER / "node_modules" / "@toolbox-sdk").glob("server-*/bin/toolbox*"))
    if not found:
        raise npm.Unavailable("Toolbox has no program for this machine")
    return [str(found[0])]


def ours_command(url: str, *options: str) -> list[str]:
    """How ours is started."""
    return [sys.executable, "-m", "servers.postgres", "--timeout", str(SECONDS), *options, url]


def dbhub_command(folder: Path, url: str, *, writes: bool = False) -> list[str]:
    """How dbhub is started, with its settings in a file of `folder`. Raises Unavailable."""
    settings = folder / "dbhub.toml"
    settings.write_text(_DBHUB_FILE.format(url=url, seconds=SECONDS, readonly="false" if writes else "true"))
    return [*_dbhub_program(), "--transport", "stdio", "--config", str(settings)]


def toolbox_command(folder: Path, port: int, database: str, user: str, password: str) -> list[str]:
    """How Toolbox is started, with its settings in a file of `folder`. Raises Unavailable."""
    settings = folder / "toolbox.yaml"
    facts = {"port": port, "database": database, "user": user, "password": password, "seconds": SECONDS}
    settings.write_text(_TOOLBOX_FILE.format(**facts))
    quiet = ["--log-level", "ERROR", "--disable-version-check", "--disable-reload"]
    return [*_toolbox_program(), "--stdio", "--config", str(settings), *quiet]


def versions() -> dict[str, str]:
    """The versions that are pinned here, by package."""
    return {
        DBHUB_PACKAGE: npm.pinned(DBHUB_FOLDER)[DBHUB_PACKAGE],
        TOOLBOX_PACKAGE: npm.pinned(TOOLBOX_FOLDER)[TOOLBOX_PACKAGE],
    }
