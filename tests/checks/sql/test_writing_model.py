"""Statements at random: a dry run says what the same statements then do, and what they do is all or nothing."""

import asyncio
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servers.common.sql.errors import SqlError
from tests.servers.sqlite.writing import SCHEMA, dry_run, execute, opened

TABLES = ("t", "child", "keyed", "log")
key = st.integers(0, 3)
conflict = st.sampled_from(["OR REPLACE", "", "OR IGNORE", "OR ABORT", "OR ROLLBACK", "OR FAIL"])
statements = st.one_of(
    st.builds("INSERT {} INTO t VALUES ({}, 'v{}')".format, conflict, key, key),
    st.builds("INSERT INTO t VALUES ({}, 'v{}') ON CONFLICT (a) DO UPDATE SET b = b || 'x'".format, key, key),
    st.builds("INSERT INTO t (b) VALUES ('w{}') RETURNING *".format, key),
    st.builds("UPDATE {} t SET a = {} WHERE a = {}".format, conflict, key, key),
    st.builds("UPDATE t SET b = 'v{}' WHERE a > {}".format, key, key),
    st.builds("DELETE FROM t WHERE a < {}".format, key),
    st.builds("INSERT {} INTO child VALUES ({}, {})".format, conflict, key, key),
    st.builds("DELETE FROM child WHERE a = {}".format, key),
    st.builds("INSERT {} INTO keyed SELECT a, b FROM t WHERE a <> {}".format, conflict, key),
    st.just("DELETE FROM keyed"),
    st.just("DELETE FROM log"),
    st.builds("CREATE TABLE IF NOT EXISTS made{} (a)".format, key),
    st.builds("DROP TABLE IF EXISTS made{}".format, key),
)


def counts(db: sqlite3.Connection) -> dict[str, int]:
    return {table: db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in TABLES}


async def run(path: Path, queries: list[str]) -> None:
    with closing(sqlite3.connect(path)) as db:
        # What a deferred foreign key says, it says at the commit.
        db.executescript(SCHEMA.replace("DEFERRABLE INITIALLY DEFERRED", ""))
        before, dump = counts(db), list(db.iterdump())
        async with opened(path) as database:
            try:
                seen: Any = await dry_run(database, *queries)
            except SqlError as error:
                with pytest.raises(SqlError, match=re.escape(error.reason)):
                    await execute(database, *queries)
                assert list(db.iterdump()) == dump
                return
            assert list(db.iterdump()) == dump
            done: Any = await execute(database, *queries)
        assert done["statements"] == seen["statements"]
        grown = dict.fromkeys(TABLES, 0)
        noted = set()
        for change in seen.get("changes", ()):
            grown[change["table"]] += change["counts"].get("inserted", 0) - change["counts"].get("deleted", 0)
            noted |= {change["table"]} if "note" in change else set()
        assert {table: counts(db)[table] - before[table] for table in TABLES if table not in noted} == {
            table: grown[table] for table in TABLES if table not in noted
        }


@pytest.mark.timeout(1_800)
@settings(database=None, max_examples=200)
@given(queries=st.lists(statements, min_size=1, max_size=8))
def test_a_dry_run_says_what_is_done(queries: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    asyncio.run(run(tmp_path_factory.mktemp("model") / "data.db", queries))
