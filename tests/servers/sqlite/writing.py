"""A database that tests change in their own process, without a server."""

import sqlite3
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from functools import partial
from pathlib import Path

from servers.common.sql.query.pages import AnswerLimits
from servers.common.sql.query.query import Parameters
from servers.common.sql.write.consent import Consent, Figures
from servers.common.sql.write.results import ResponseLimits, Statement, WriteResult
from servers.sqlite.engine.database import Database, Source, open_databases
from servers.sqlite.engine.deadline import Limits, StatementDeadline
from servers.sqlite.engine.opening import GuardedConnection
from servers.sqlite.write import execution
from servers.sqlite.write.session import write

LIMITS = ResponseLimits(AnswerLimits(1_000, 100_000, 10_000), 500_000)

SCHEMA = """
CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT UNIQUE);
CREATE TABLE child (a INTEGER PRIMARY KEY, t REFERENCES t ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED);
CREATE TABLE keyed (k TEXT PRIMARY KEY, v) WITHOUT ROWID;
CREATE TABLE log (said);
CREATE TRIGGER logs AFTER INSERT ON keyed BEGIN INSERT INTO log VALUES (new.k); END;
CREATE VIEW seen AS SELECT * FROM t;
CREATE VIRTUAL TABLE docs USING fts5(body);
INSERT INTO t VALUES (1, 'one'), (2, 'two');
INSERT INTO child VALUES (1, 1), (2, 1);
"""


@contextmanager
def counting(folder: Path, mode: str = "wal") -> Iterator[sqlite3.Connection]:
    """A database for counting changes, and a separate connection to it."""
    with closing(sqlite3.connect(folder / "data.db", timeout=0, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA journal_mode = {mode}")
        connection.execute("CREATE TABLE rows (batch INTEGER, n INTEGER)")
        connection.execute("CREATE TABLE counter AS SELECT 0 AS n")
        yield connection


@asynccontextmanager
async def opened(path: Path, limits: Limits = Limits()) -> AsyncIterator[Database]:  # noqa: B008 - it is a tuple
    """Opens the database with write access."""
    async with open_databases([Source("data", path, True)], limits, 2) as databases:
        yield databases.get(None)


async def execute(
    database: Database,
    *queries: str,
    parameters: Sequence[Parameters] = (),
    only_tables: bool = False,
    consent: Consent = Consent(),  # noqa: B008 - it is a tuple
) -> WriteResult | Figures:
    """Runs statements as `write_query` does, or with `only_tables` as `create_table`."""
    given = parameters or [()] * len(queries)
    statements = [Statement(*one) for one in zip(queries, given, strict=True)]
    done = await write(database, partial(execution.execute, statements, LIMITS, only_tables, consent))
    return done if isinstance(done, Figures) else done.value


async def dry_run(database: Database, *queries: str, limits: ResponseLimits = LIMITS) -> WriteResult:
    """Returns the result of a dry run of these statements."""
    done = await write(database, partial(execution.dry_run, [Statement(query) for query in queries], limits))
    return done.value


def ask(statement: str, connection: GuardedConnection, _: StatementDeadline) -> object:
    """Returns the first row. A worker process can run this function, too."""
    return connection.execute(statement).fetchone()
