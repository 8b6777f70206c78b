"""The SQLite servers that are measured and compared, and how each is started for one database file."""

import sys
from functools import cache
from pathlib import Path

from tests import npm, pypi
from tests.checks.benchmarks.peers import Peer
from tests.checks.benchmarks.sqlite_tables import BENCH, BIG, NOTHING, SHARED
from tests.npm import Unavailable

FOLDER = Path(__file__).resolve().parent / "sqlite"
REQUIREMENTS = FOLDER / "requirements.txt"
DBHUB_PACKAGE = "@bytebase/dbhub"
ARCHIVED_PACKAGE = "mcp-server-sqlite"
TOOLBOX_FOLDER = FOLDER.with_name("toolbox")
TOOLBOX_PACKAGE = "@toolbox-sdk/server"

# Whether a model may write is told in a file alone. The time, which it takes for other databases, does nothing here.
_DBHUB_FILE = """
[[sources]]
id = "data"
dsn = "{dsn}"
query_timeout = 1

[[tools]]
name = "execute_sql"
source = "data"
readonly = {readonly}

[[tools]]
name = "search_objects"
source = "data"
"""

_TOOLBOX_FILE = """
kind: source
name: data
type: sqlite
database: {database}
---
kind: tool
name: execute_sql
type: sqlite-execute-sql
source: data
description: Runs a statement.
"""


@cache
def _dbhub_program(folder: Path) -> list[str]:
    """Installs it, if need be. It needs Node 22.5, of which a host's own may fall short. Raises Unavailable."""
    node = npm.find_node()
    npm.require(node, folder, "dbhub")
    return [str(node), str(folder / "node_modules" / DBHUB_PACKAGE / "dist" / "index.js")]


@cache
def _archived_program() -> list[str]:
    """Installs it, if need be, with the newest SDK that it starts with. Raises Unavailable."""
    return [str(pypi.require(ARCHIVED_PACKAGE, REQUIREMENTS).with_name(ARCHIVED_PACKAGE))]


@cache
def _toolbox_program() -> Path:
    """Installs it, if need be: a program for each kind of machine, which npm chooses. Raises Unavailable."""
    npm.require(npm.find_node(), TOOLBOX_FOLDER, "MCP Toolbox")
    found = sorted((TOOLBOX_FOLDER / "node_modules").glob(f"{TOOLBOX_PACKAGE}-*/bin/toolbox*"))
    if not found:
        raise Unavailable("MCP Toolbox has no program for this machine")
    return found[0]


def toolbox_command(database: Path) -> list[str]:
    """How MCP Toolbox is started, with its settings in a file beside the database. Raises Unavailable."""
    return start_toolbox(database.with_suffix(".yaml"), _TOOLBOX_FILE.format(database=database))


def start_toolbox(settings: Path, text: str) -> list[str]:
    """The same with settings of any kind of database, in a file."""
    settings.write_text(text)
    quiet = ("--log-level", "ERROR", "--disable-version-check", "--disable-reload")
    return [str(_toolbox_program()), "--stdio", "--config", str(settings), *quiet]


def dbhub_command(database: Path, *, writes: bool = False) -> list[str]:
    """How dbhub is started, with its settings in a file beside the database. Raises Unavailable."""
    return start_dbhub(FOLDER, database.with_suffix(".toml"), f"sqlite://{database}", writes=writes)


def start_dbhub(packages: Path, settings: Path, dsn: str, *, writes: bool) -> list[str]:
    """The same for any kind of database, with its settings in a file."""
    settings.write_text(_DBHUB_FILE.format(dsn=dsn, readonly="false" if writes else "true"))
    return [*_dbhub_program(packages), "--transport", "stdio", "--config", str(settings)]


def archived_command(database: Path) -> list[str]:
    """How the archived official server is started. Raises Unavailable."""
    return [*_archived_program(), "--db-path", str(database)]


def ours_command(database: Path, *options: str | int) -> list[str]:
    """How ours is started."""
    return [sys.executable, "-m", "servers.sqlite", *map(str, options), str(database)]


def versions() -> dict[str, str]:
    """The versions that are pinned here, by package."""
    archived = pypi.pinned(REQUIREMENTS)[ARCHIVED_PACKAGE]
    toolbox = npm.pinned(TOOLBOX_FOLDER)[TOOLBOX_PACKAGE]
    return {DBHUB_PACKAGE: npm.pinned(FOLDER)[DBHUB_PACKAGE], ARCHIVED_PACKAGE: archived, TOOLBOX_PACKAGE: toolbox}


BUNDLE_PACKAGE = Peer("ours", lambda folder: ours_command(folder / BENCH))
# With limits as wide as the operator can make them.
OURS_WIDE = Peer("ours", lambda folder: ours_command(folder / BENCH, "--max-rows", 1_000_000, "--max-page", 900_000))
OURS_SHARED = Peer("ours", lambda folder: ours_command(folder / SHARED))
OURS_BIG = Peer("ours", lambda folder: ours_command(folder / BIG))
EMPTY = Peer("empty", lambda folder: ours_command(folder / NOTHING))
DBHUB = Peer("dbhub", lambda folder: dbhub_command(folder / BENCH))
ARCHIVED = Peer("archived", lambda folder: archived_command(folder / BENCH))
TOOLBOX = Peer("toolbox", lambda folder: toolbox_command(folder / BENCH))
# No server: the same rows read and written as JSON by the standard library, in this process.
PLAIN = Peer("plain", lambda _folder: [])
