"""Unknown names in double quotes, which SQLite would read as texts."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from servers.sqlite.engine.quoted_names import QuotedTextError, execute, require_names
from tests.servers.sqlite.serving import inside

MADE = """
CREATE TABLE person (id INTEGER PRIMARY KEY, "full name" TEXT, "a""b" TEXT, [c`d] TEXT, data TEXT);
INSERT INTO person VALUES (1, 'Ada', 'x', 'y', '{"k": 2}');
CREATE VIRTUAL TABLE page USING fts5(body);
CREATE VIEW old AS SELECT "no such" AS text, id FROM person;
"""


def opened() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.executescript(MADE)
    return connection


@pytest.mark.parametrize(
    ("sql", "name"),
    [
        ('SELECT "fullname" FROM person', "fullname"),
        ('SELECT id FROM person WHERE "full name" = "Ada"', "Ada"),
        ('SELECT strftime("%Y", 0)', "%Y"),
        ('SELECT data ->> "k" FROM person', "k"),
        ('SELECT id FROM person ORDER BY "when"', "when"),
        ('UPDATE person SET "full name" = "Bob"', "Bob"),
        ('DELETE FROM person WHERE "nmae" = 1', "nmae"),
        ('CREATE INDEX misspelt ON person ("nmae")', "nmae"),
        ('CREATE VIEW misspelt AS SELECT "nmae" FROM person', "nmae"),
        ('CREATE TEMP VIEW "as" ("as") AS /* AS */ SELECT "nmae" FROM person', "nmae"),
        ('CREATE TABLE kind (name TEXT CHECK (name <> "none"))', "none"),
    ],
)
def test_an_unknown_quoted_name_is_an_error(sql: str, name: str) -> None:
    with closing(opened()) as connection, pytest.raises(QuotedTextError, match=name):
        execute(connection, sql)


@pytest.mark.parametrize(
    "sql",
    [
        """SELECT "full name", "a""b", "c`d", person."id" FROM "main"."person" WHERE "ID" = 1 AND '"x"' <> 'Ada'""",
        'SELECT id AS "the id" FROM person AS "p" GROUP BY "the id" ORDER BY "the id" -- "none"',
        'WITH "w" AS (SELECT 1 AS "n") SELECT "n" FROM "w" /* "none" */',
        'INSERT INTO person ("id", "full name") VALUES (2, :name) ON CONFLICT ("id") DO NOTHING RETURNING "id"',
        'CREATE TABLE "kind" ("name" TEXT DEFAULT "none", CHECK ("name" <> \'\'))',
        'CREATE VIEW "later" AS SELECT "name" FROM "not yet"',
        'CREATE VIEW "named" AS SELECT "full name" AS "as" FROM person',
        'PRAGMA table_info("person")',
        "SELECT text FROM old",
        'EXPLAIN QUERY PLAN SELECT "id" FROM "old"',
    ],
)
def test_a_known_quoted_name_is_unchanged(sql: str) -> None:
    parameters = {"name": "Bob"} if ":name" in sql else {}
    with closing(opened()) as one, closing(opened()) as other:
        cursor, plain = execute(one, sql, parameters), other.execute(sql, parameters)
        assert (cursor.description, cursor.fetchall()) == (plain.description, plain.fetchall())


def test_other_errors_are_those_of_the_original_statement() -> None:
    with closing(opened()) as connection, pytest.raises(sqlite3.OperationalError, match="no such table: none"):
        execute(connection, 'SELECT "x" FROM "none"')


async def test_the_error_suggests_the_nearest_names_and_single_quotes(tmp_path: Path) -> None:
    file = tmp_path / "data.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript(MADE)
    async with inside("--allow-write", file) as peer:
        answers = [
            await peer.error("read_query", query='SELECT "ful name" FROM person'),
            await peer.error("explain_query", query='SELECT "ful name" FROM person'),
            await peer.error("export", query='SELECT "ful name" FROM person'),
            await peer.error("read_query", query="SELECT \"ful name\" FROM person, page WHERE page MATCH 'a'"),
            await peer.error("write_query", query='UPDATE person SET "full name" = "ful name"'),
            await peer.error("write_query", query='UPDATE person SET "full name" = "ful name"', dry_run=True),
        ]
        tried = await peer.error("explain_query", query='CREATE INDEX i ON person ("naem"); SELECT 1')
        rows = (await peer.data("read_query", query="SELECT * FROM person"))["rows"]
    assert "no such column: naem" in tried
    for answer in answers:
        assert "no such column: ful name" in answer
        assert "put a string in single quotes" in answer
        assert "full name" in answer
    assert rows[0][1] == "Ada"


def test_a_lock_during_the_check_is_not_an_unknown_name() -> None:
    locked = sqlite3.OperationalError("database is locked")
    locked.sqlite_errorcode = sqlite3.SQLITE_BUSY

    def compiled(sql: str) -> None:
        if "`" in sql:
            raise locked

    with pytest.raises(sqlite3.OperationalError) as caught:
        require_names('SELECT "id" FROM person', compiled)  # type: ignore[arg-type]
    assert caught.value is locked
