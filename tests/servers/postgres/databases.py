"""The sample database, and the roles that log in to it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.postgres_server import SUPERUSER, PostgresServer

__all__ = ["GUARDED", "OWNER", "PASSWORD", "READER", "SAMPLE", "WRITER", "Database", "copy_sample", "make_sample"]

SAMPLE = "sample"
READER, WRITER, OWNER, GUARDED = "reader", "writer", "owner", "guarded"
PASSWORD = "correct horse/battery:staple@"
"""The password of `guarded`, the only role that needs one. It has the privileges of the reader."""
SCRIPT = Path(__file__).with_name("sample.sql")

_ROLES = f"""
CREATE ROLE {OWNER} LOGIN;
CREATE ROLE {READER} LOGIN;
CREATE ROLE {WRITER} LOGIN;
CREATE ROLE {GUARDED} LOGIN PASSWORD '{PASSWORD}' IN ROLE {READER};
"""
_RIGHTS = f"""
GRANT USAGE ON SCHEMA public, warehouse TO {READER}, {WRITER};
GRANT CREATE ON SCHEMA public TO {WRITER};
GRANT SELECT ON ALL TABLES IN SCHEMA public, warehouse TO {READER};
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public, warehouse TO {WRITER};
GRANT USAGE ON ALL SEQUENCES IN SCHEMA public, warehouse TO {WRITER};
"""


class Database:
    """A database of a server."""

    def __init__(self, server: PostgresServer, name: str) -> None:
        self.server = server
        self.name = name
        self.reader = server.url(name, READER)
        """The URL of a role that may only read every table."""
        self.writer = server.url(name, WRITER)
        """The URL of a role that may change every table, and create tables in `public`."""
        self.owner = server.url(name, OWNER)
        """The URL of the role that owns the database, and is no superuser."""
        self.guarded = server.url(name, GUARDED, PASSWORD)
        """The URL, with a password, of a role with the privileges of the reader."""

    def run(self, sql: str, values: Sequence[Any] | None = None, *, user: str = SUPERUSER) -> list[tuple[Any, ...]]:
        """Runs statements, by default as the superuser, and returns the rows of the last."""
        return self.server.run(sql, values, dbname=self.name, user=user)


def make_sample(server: PostgresServer) -> None:
    """Makes the roles, and the template database of all copies."""
    server.run(_ROLES)
    server.run(f"CREATE DATABASE {SAMPLE} OWNER {OWNER}")
    server.run(f"ALTER SCHEMA public OWNER TO {OWNER}; REVOKE CREATE ON SCHEMA public FROM PUBLIC", dbname=SAMPLE)
    server.run(SCRIPT.read_text(encoding="utf-8"), dbname=SAMPLE, user=OWNER)
    server.run(_RIGHTS, dbname=SAMPLE, user=OWNER)
    server.run("ANALYZE", dbname=SAMPLE)


def copy_sample(server: PostgresServer, name: str) -> Database:
    """Makes a copy of the sample with this name."""
    # PostgreSQL 15 copies files only with this strategy, which takes a fifth of the time.
    ((version,),) = server.run("SELECT current_setting('server_version_num')::integer")
    strategy = "STRATEGY file_copy" if version >= 150_000 else ""
    server.run(f"CREATE DATABASE {name} TEMPLATE {SAMPLE} {strategy}")
    return Database(server, name)
