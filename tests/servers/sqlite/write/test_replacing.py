"""Rows deleted by REPLACE, which count towards the user's consent."""

import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from servers.common.sql.importing.files import text_opener
from servers.common.sql.importing.imports import Import
from servers.common.sql.importing.tables import FormatRequest
from servers.common.sql.write.consent import Consent, Figures
from servers.sqlite.write import importing
from servers.sqlite.write.session import write
from tests.servers.sqlite.writing import execute, opened

UNIQUE = 40
SCHEMA = f"""
CREATE TABLE wide ({", ".join(f"c{n} INTEGER UNIQUE" for n in range(UNIQUE))});
CREATE TABLE plain (a INTEGER PRIMARY KEY, b TEXT UNIQUE);
CREATE TABLE silent (a INTEGER PRIMARY KEY ON CONFLICT REPLACE, b TEXT UNIQUE ON CONFLICT REPLACE);
CREATE TABLE keyed (k TEXT PRIMARY KEY ON CONFLICT REPLACE, v) WITHOUT ROWID;
CREATE TABLE parent (a INTEGER PRIMARY KEY, b UNIQUE);
CREATE TABLE child (p REFERENCES parent ON DELETE CASCADE);
CREATE TABLE source (a);
CREATE TRIGGER passes_on AFTER INSERT ON source BEGIN INSERT OR REPLACE INTO plain VALUES (new.a, 'two'); END;
CREATE TABLE watched (a INTEGER PRIMARY KEY, b UNIQUE);
CREATE TRIGGER counts AFTER DELETE ON watched BEGIN INSERT INTO source VALUES (NULL); END;
CREATE VIEW seen AS SELECT * FROM plain;
CREATE TRIGGER through INSTEAD OF INSERT ON seen BEGIN REPLACE INTO plain VALUES (new.a, new.b); END;
CREATE VIRTUAL TABLE docs USING fts5(body);
INSERT INTO plain VALUES (1, 'one'), (2, 'two'), (3, 'three');
INSERT INTO silent VALUES (1, 'one'), (2, 'two'), (3, 'three');
INSERT INTO keyed VALUES ('a', 1), ('b', 2);
INSERT INTO parent VALUES (1, 'x'), (2, 'y');
INSERT INTO child VALUES (1), (1), (2);
INSERT INTO watched VALUES (1, 'x'), (2, 'y');
INSERT INTO docs (rowid, body) VALUES (1, 'word'), (2, 'other');
"""

WIDE = f"INSERT OR REPLACE INTO wide VALUES ({', '.join(map(str, range(UNIQUE)))})"
ROWS = [
    (WIDE, 1 + UNIQUE),
    ("INSERT INTO plain VALUES (4, 'replace')", 1),
    ("REPLACE INTO plain VALUES (1, 'two')", 1 + 2),
    ("REPLACE INTO plain VALUES (9, 'nine')", 1),
    ("UPDATE OR REPLACE plain SET b = 'one' WHERE a = 3", 1 + 1),
    ("UPDATE OR REPLACE plain SET b = 'same'", 3 + 2),
    ("INSERT INTO silent VALUES (1, 'two')", 1 + 2),
    ("UPDATE silent SET b = 'x'", 3 + 2),
    ("INSERT INTO keyed VALUES ('a', 3), ('c', 4)", 2 + 1),
    ("REPLACE INTO parent VALUES (1, 'y')", 1 + 2 + 3),
    ("INSERT INTO source VALUES (7)", 2 + 1),
    ("REPLACE INTO watched VALUES (1, 'y')", 1 + 2),
    ("INSERT INTO seen VALUES (1, 'two')", 1 + 2),
    ("DELETE FROM silent WHERE a < 3", 2),
    ("INSERT INTO plain VALUES (1, 'x') ON CONFLICT DO UPDATE SET b = 'x'", 1),
]
"""Statements, and the number of all rows that they change."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "data.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(SCHEMA)
        rows = [[n if n == column else -1 - n * UNIQUE - column for column in range(UNIQUE)] for n in range(UNIQUE)]
        connection.executemany(f"INSERT INTO wide VALUES ({', '.join('?' * UNIQUE)})", rows)
    return path


async def test_rows_deleted_by_replace_count_towards_consent(path: Path) -> None:
    counted = {}
    async with opened(path) as database:
        for query, _ in ROWS:
            figures = await execute(database, query, consent=Consent(0))
            assert isinstance(figures, Figures)
            counted[query] = figures.rows
    assert counted == dict(ROWS)


async def test_replacing_a_full_text_document_counts_more_than_one_row(path: Path) -> None:
    async with opened(path) as database:
        for query in (
            "REPLACE INTO docs (rowid, body) VALUES (1, 'new')",
            "REPLACE INTO docs_content VALUES (1, 'x')",
        ):
            assert isinstance(await execute(database, query, consent=Consent(1)), Figures)


async def test_consent_covers_replaced_rows(path: Path) -> None:
    async with opened(path) as database:
        figures = await execute(database, WIDE, consent=Consent(1))
        assert isinstance(figures, Figures)
        done = await execute(database, WIDE, consent=Consent(1, figures))
    assert not isinstance(done, Figures)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM wide").fetchone() == (1,)


async def test_an_import_counts_the_rows_it_replaces(path: Path) -> None:
    request = Import("silent", text_opener("a,b\n1,two\n"), FormatRequest())
    async with opened(path) as database:
        figures = await write(database, partial(importing.import_csv, request, Consent(0)))
    assert isinstance(figures, Figures)
    assert figures.rows == 1 + 2
