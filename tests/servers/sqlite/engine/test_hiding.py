"""Hidden tables and columns: attempts to read them, and the visible rest."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from servers.sqlite.server import app
from servers.sqlite.settings import Narrowing
from tests.servers.peers import settings_of
from tests.servers.sqlite.serving import Peer, inside

SECRET, OTHER, MASKED = "SECRET-4711", "ANOTHER-0815", "ada@example.org"
COLUMN = "passphrase"
SCHEMA = f"""
PRAGMA journal_mode = WAL;
CREATE TABLE users (
    id INTEGER PRIMARY KEY, name TEXT, email TEXT UNIQUE, {COLUMN} TEXT DEFAULT 'DEFAULT-SECRET' UNIQUE,
    initial AS (substr({COLUMN}, 1, 1)), CHECK ({COLUMN} <> 'CHECK-SECRET'));
CREATE INDEX by_secret ON users ({COLUMN}, name);
CREATE INDEX by_upper ON users (upper({COLUMN}));
CREATE INDEX admins ON users (name) WHERE {COLUMN} = '{SECRET}';
CREATE TABLE orders (id INTEGER PRIMARY KEY, user INTEGER REFERENCES users, word TEXT REFERENCES users ({COLUMN}), n);
CREATE TABLE vault (id INTEGER PRIMARY KEY, what TEXT);
CREATE TABLE log (what);
CREATE TABLE words (word TEXT REFERENCES users ({COLUMN}));
CREATE TABLE calls (user INTEGER REFERENCES users, what);
CREATE VIEW shown AS SELECT id, {COLUMN} AS harmless FROM users;
CREATE VIEW over AS SELECT * FROM shown;
CREATE VIEW plain AS SELECT id, n FROM orders;
CREATE VIRTUAL TABLE search USING fts5({COLUMN}, content='users', content_rowid='id');
CREATE VIRTUAL TABLE terms USING fts5vocab(search, 'row');
CREATE TRIGGER copies AFTER INSERT ON orders WHEN new.n = 13
    BEGIN INSERT INTO log SELECT {COLUMN} FROM users; END;
CREATE TRIGGER says AFTER UPDATE ON users BEGIN SELECT '{COLUMN}'; END;
INSERT INTO users (id, name, email, {COLUMN}) VALUES
    (1, 'Ada', '{MASKED}', '{SECRET}'), (2, 'Bob', 'bob@example.org', '{OTHER}'), (3, 'Eve', 'eve@example.org', NULL);
INSERT INTO orders VALUES (1, 1, NULL, 5), (2, 2, NULL, 6);
INSERT INTO vault VALUES (1, '{SECRET}');
INSERT INTO search (search) VALUES ('rebuild');
ANALYZE;
"""
HIDE = ("--hide", f"users.{COLUMN}", "--hide", "users.email=substr(email, 1, 1) || '***'", "--hide", "vault")

READS = [
    f"SELECT {COLUMN} FROM users",
    f"SELECT users.{COLUMN} FROM users",
    f"SELECT [{COLUMN}] || 1 FROM users WHERE id = 1",
    f"SELECT instr({COLUMN}, 'S') FROM main.users",
    f"SELECT id FROM users WHERE instr({COLUMN}, 'S')",
    "SELECT rowid FROM main.users INDEXED BY by_secret",
    "SELECT min(_rowid_) FROM main.users",
    f"SELECT main.users.{COLUMN} FROM main.users",
    f"SELECT {COLUMN} FROM main.users",
    f"SELECT upper({COLUMN}) FROM main.users INDEXED BY by_upper",
    "SELECT * FROM main.users",
    "SELECT * FROM main . users AS u",
    "SELECT id FROM main.users INDEXED BY by_secret",
    "SELECT id FROM users INDEXED BY by_secret",
    "SELECT name FROM users INDEXED BY admins",
    f"SELECT id FROM users WHERE {COLUMN} = '{SECRET}'",
    f"SELECT id FROM main.users WHERE {COLUMN} LIKE 'S%'",
    f"SELECT id FROM users ORDER BY {COLUMN}",
    f"SELECT count(DISTINCT {COLUMN}) FROM main.users",
    f"SELECT max({COLUMN}) FROM main.users",
    "SELECT initial FROM users",
    "SELECT initial FROM main.users",
    "SELECT rowid, * FROM main.users",
    f"WITH u AS (SELECT * FROM main.users) SELECT {COLUMN} FROM u",
    "SELECT (SELECT group_concat(x) FROM (SELECT u.* FROM main.users AS u))",
    "SELECT 1 IN (SELECT id FROM main.users)",
    "SELECT 1 IN main.users",
    "SELECT * FROM users UNION SELECT * FROM main.users",
    f"SELECT a.{COLUMN} FROM users a JOIN main.users b USING (id)",
    "SELECT * FROM users NATURAL JOIN main.users",
    "SELECT * FROM shown",
    "SELECT harmless FROM over",
    "SELECT * FROM main.over",
    "SELECT * FROM search",
    "SELECT rowid FROM search WHERE search MATCH 'secret'",
    "SELECT highlight(search, 0, '[', ']') FROM search('secret')",
    "SELECT * FROM terms",
    "SELECT * FROM search_data",
    "SELECT hex(block) FROM search_data",
    "SELECT * FROM search_idx",
    "SELECT * FROM search_docsize",
    "SELECT * FROM vault",
    "SELECT what FROM main.vault",
    "SELECT count(*) FROM vault",
    "SELECT sql FROM sqlite_schema",
    "SELECT sql FROM sqlite_master WHERE name = 'users'",
    "SELECT * FROM main.sqlite_schema",
    "SELECT name FROM sqlite_schema WHERE sql LIKE '%secret%'",
    "SELECT sql FROM sqlite_temp_schema",
    "SELECT sql FROM temp.sqlite_master",
    "SELECT * FROM sqlite_stat1",
    "SELECT * FROM sqlite_stat4",
    "SELECT * FROM pragma_table_info('users', 'main')",
    "SELECT name FROM pragma_table_xinfo('users', 'main')",
    "PRAGMA main.table_info(users)",
    "PRAGMA main.table_xinfo('users')",
    "PRAGMA table_info(vault)",
    "PRAGMA table_list",
    "SELECT * FROM pragma_table_list",
    "PRAGMA index_list(users)",
    "PRAGMA main.index_list(users)",
    "PRAGMA index_info(by_secret)",
    "PRAGMA index_xinfo(by_secret)",
    "SELECT * FROM pragma_index_info('by_secret')",
    "PRAGMA foreign_key_list(orders)",
    "PRAGMA foreign_key_check",
    "PRAGMA integrity_check",
    "PRAGMA quick_check(users)",
    f"EXPLAIN SELECT {COLUMN} FROM main.users",
    f"EXPLAIN QUERY PLAN SELECT id FROM main.users WHERE {COLUMN} = 'x'",
    f"SELECT json_group_array({COLUMN}) FROM main.users",
    "SELECT * FROM dbstat",
    "SELECT * FROM sqlite_dbpage",
    "SELECT likelihood(initial, 0.5) FROM main.users",
    f"SELECT row_number() OVER (ORDER BY {COLUMN}), id FROM main.users",
    f"VALUES ((SELECT {COLUMN} FROM main.users))",
]
"""Queries that fail."""
CHANGES = [
    f"UPDATE orders SET n = (SELECT {COLUMN} FROM users)",
    "UPDATE orders SET n = (SELECT id FROM main.users INDEXED BY by_secret LIMIT 1)",
    f"UPDATE orders SET n = u.{COLUMN} FROM main.users AS u",
    "UPDATE orders SET n = u.id FROM main.users AS u",
    f"DELETE FROM orders WHERE EXISTS (SELECT 1 FROM main.users WHERE {COLUMN} LIKE 'S%')",
    "INSERT INTO log SELECT id FROM main.users",
    f"INSERT INTO log SELECT {COLUMN} FROM main.users",
    f"INSERT INTO log VALUES ((SELECT {COLUMN} FROM main.users))",
    f"INSERT INTO users (id, {COLUMN}) VALUES (9, '{SECRET}')",
    f"INSERT OR IGNORE INTO main.users ({COLUMN}) VALUES ('{SECRET}')",
    f"INSERT INTO main.users (id, {COLUMN}) VALUES (1, 'x') ON CONFLICT DO UPDATE SET name = {COLUMN} RETURNING *",
    f"UPDATE main.users SET name = {COLUMN}",
    "UPDATE main.users SET name = 'x' RETURNING *",
    "DELETE FROM main.users RETURNING *",
    "UPDATE users SET name = 'x'",
    f"INSERT INTO orders (word) VALUES ('{SECRET}')",
    "INSERT INTO orders (user, n) VALUES (1, 13)",
    f"INSERT INTO words VALUES ('{SECRET}')",
    "INSERT INTO words VALUES ('a guess')",
    "INSERT OR IGNORE INTO words VALUES ('a guess')",
    f"CREATE TABLE copy AS SELECT {COLUMN} FROM main.users",
    "CREATE TABLE copy AS SELECT * FROM main.users",
    "ALTER TABLE users RENAME TO others",
    f"ALTER TABLE main.users RENAME COLUMN {COLUMN} TO harmless",
    f"ALTER TABLE main.users DROP COLUMN {COLUMN}",
    "ALTER TABLE vault RENAME TO open",
    f"CREATE UNIQUE INDEX tells ON main.users ({COLUMN})",
    "CREATE INDEX main.tells ON users (name)",
    f"CREATE TRIGGER t AFTER INSERT ON log BEGIN INSERT INTO orders (n) SELECT {COLUMN} FROM users; END",
    f"CREATE VIEW mine AS SELECT {COLUMN} FROM users; SELECT * FROM mine",
    f"CREATE VIRTUAL TABLE f USING fts5({COLUMN}, content='users'); INSERT INTO f (f) VALUES ('rebuild')",
    "CREATE VIRTUAL TABLE v USING fts5vocab('search', 'row'); SELECT * FROM v",
    "INSERT INTO search (search) VALUES ('integrity-check')",
    "DROP TABLE vault",
    "DROP TABLE users",
    "INSERT INTO vault VALUES (1, 'x')",
]
"""Changes that fail."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "data.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(SCHEMA)
    return path


def leaks(answer: Any) -> bool:
    """Returns True if the answer has a hidden value, or the hidden column's name outside the statement's own text."""
    text = json.dumps(answer)
    return any(word in text for word in (SECRET, OTHER, MASKED, "DEFAULT-SECRET", "CHECK-SECRET"))


async def find_odd(peer: Peer, tool: str, statements: list[str]) -> list[str]:
    """Returns the statements that did not fail or whose answer leaked hidden data, with their answers."""
    odd = []
    for sql in statements:
        result = await peer.call(tool, query=sql)
        text = result["content"][0]["text"]
        # A failing constraint would show whether a value exists.
        if not result.get("isError") or leaks(result) or text.startswith("constraint"):
            odd.append(f"{sql}: {text}")
    return odd


async def test_no_query_reads_hidden_data(path: Path) -> None:
    async with inside(*HIDE, path) as peer:
        assert await find_odd(peer, "read_query", READS) == []
    async with inside(*HIDE, "--allow-write", path) as peer:
        assert await find_odd(peer, "write_query", READS) == []


async def test_no_change_reads_or_changes_hidden_data(path: Path) -> None:
    async with inside(*HIDE, "--allow-write", path) as peer:
        assert await find_odd(peer, "write_query", CHANGES) == []
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute(f"SELECT {COLUMN} FROM users WHERE id < 3 ORDER BY id").fetchall() == [
            (SECRET,),
            (OTHER,),
        ]
        assert connection.execute("SELECT count(*) FROM log").fetchone() == (0,)


@pytest.mark.parametrize(
    "sql", ["INSERT INTO users (name) VALUES ('x')", "DELETE FROM main.users", "DROP TABLE users"]
)
async def test_a_change_to_a_table_with_hidden_parts_is_refused_with_the_reason(path: Path, sql: str) -> None:
    async with inside(*HIDE, "--allow-write", path) as peer:
        assert "a table in which the operator hides something" in await peer.error("write_query", query=sql)


ON_VIEWS = [
    "UPDATE users SET name = 'x'",
    "DELETE FROM users",
    "CREATE INDEX by_name ON users (name)",
    "ALTER TABLE users ADD COLUMN more",
]


@pytest.mark.parametrize("sql", ON_VIEWS)
async def test_an_error_about_a_masked_table_explains_its_view(path: Path, sql: str) -> None:
    async with inside(*HIDE, "--allow-write", path) as peer:
        error = await peer.error("write_query", query=sql)
        assert "The operator hides parts of users: the rest is read through a view" in error


@pytest.mark.parametrize("sql", ["UPDATE two SET n = 3", "DROP VIEW three"])
async def test_an_error_about_an_ordinary_view_does_not_mention_the_operator(path: Path, sql: str) -> None:
    async with inside(*HIDE, "--allow-write", path) as peer:
        await peer.text("write_query", query="CREATE VIEW two AS SELECT 2 AS n")
        error = await peer.error("write_query", query=sql)
    assert "view" in error
    assert "operator" not in error


async def test_the_visible_columns_of_a_table_are_read_as_usual(path: Path) -> None:
    async with inside(*HIDE, "--allow-write", path) as peer:
        all_of_it = await peer.data("read_query", query="SELECT * FROM users ORDER BY id")
        assert (all_of_it["columns"], all_of_it["declared"]) == (["id", "name", "email"], ["INTEGER", "TEXT", None])
        assert all_of_it["rows"][0] == [1, "Ada", "a***"]
        joined = "SELECT name, n FROM users JOIN orders ON user = users.id WHERE name = ?"
        assert (await peer.data("read_query", query=joined, parameters=["Ada"]))["rows"] == [["Ada", 5]]
        assert (await peer.data("read_query", query="SELECT id FROM users"))["rows"] == [[1], [2], [3]]
        assert (await peer.data("read_query", query="SELECT count(*) FROM users"))["rows"] == [[3]]
        in_a_process = "SELECT instr(name, 'v') FROM users WHERE id = 3"
        assert (await peer.data("read_query", query=in_a_process))["rows"] == [[2]]
        masked = "SELECT id FROM users WHERE email = ?"
        assert (await peer.data("read_query", query=masked, parameters=[MASKED]))["rows"] == []
        assert (await peer.data("read_query", query="SELECT n FROM plain"))["rows"] == [[5], [6]]
        for _ in range(3):  # from the second time on, the event loop may run it
            quick = await peer.data("read_query", query="SELECT name FROM users WHERE id = 2")
            assert quick["rows"] == [["Bob"]]
        # A foreign key is checked although parts of its table are hidden.
        assert not (await peer.call("write_query", query="INSERT INTO calls VALUES (2, 'x')")).get("isError")
        assert not (await peer.call("write_query", query="CREATE TABLE mine AS SELECT * FROM users")).get("isError")


async def test_a_learned_statement_hides_the_same(path: Path) -> None:
    async with inside(*HIDE, path) as peer:
        for _ in range(5):
            assert (await peer.data("read_query", query="SELECT * FROM users WHERE id = 1"))["rows"] == [
                [1, "Ada", "a***"]
            ]
            await peer.error("read_query", query="SELECT * FROM vault")


async def test_a_foreign_key_of_a_hidden_column_is_hidden(tmp_path: Path) -> None:
    file = tmp_path / "data.db"
    script = f"CREATE TABLE b (x PRIMARY KEY); CREATE TABLE a (n REFERENCES b, {COLUMN} REFERENCES b)"
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript(script)
    async with inside("--hide", f"a.{COLUMN}", file) as peer:
        described = await peer.text("describe_table", table_name="a")
    assert "a(n) -> b" in described
    assert COLUMN not in described


async def test_indexes_on_hidden_columns_do_not_order_rows(path: Path) -> None:
    async with inside(*HIDE, path) as peer:
        for query in ("SELECT id FROM users", "SELECT name FROM users", "SELECT DISTINCT email FROM users"):
            plan = await peer.text("explain_query", query=query)
            assert "INDEX by_" not in plan
            assert "autoindex" not in plan


async def test_no_other_tool_shows_hidden_data(path: Path) -> None:
    async with inside(*HIDE, "--allow-write", path) as peer:
        answers = [
            await peer.call("list_tables"),
            *[await peer.call("list_tables", search=word) for word in ("DEFAULT-SECRET", COLUMN, "harmless")],
            await peer.call("describe_database"),
            await peer.call("describe_table", table_name="users", sample=5, statistics=True),
            await peer.call("describe_table", table_name="orders"),
            await peer.call("explain_query", query="SELECT * FROM users"),
            await peer.call("read_query", query="SELECT passphras FROM users"),
            await peer.call("import_csv", table="users", csv="id,x\n1,2\n"),
            await peer.request("resources/list"),
            await peer.request("resources/read", uri="sqlite:///data/schema"),
            await peer.request("resources/read", uri="sqlite:///data/users"),
            await peer.request("resources/read", uri="sqlite:///data/users/1"),
        ]
        refused = [
            await peer.request("tools/call", name="describe_table", arguments={"table_name": "vault", "sample": 5}),
            await peer.request("tools/call", name="describe_table", arguments={"table_name": "search"}),
            await peer.request("tools/call", name="describe_table", arguments={"table_name": "shown"}),
            await peer.request("resources/read", uri="sqlite:///data/vault"),
            await peer.request("resources/read", uri="sqlite:///data/vault/1"),
        ]
    text = json.dumps(answers)
    assert not leaks(answers + refused)
    words = (f'"{COLUMN}', "initial", "vault", "by_secret", "admins", "search", "shown")
    assert [word for word in words if word in text] == []
    assert "a***" in text
    assert [one for one in refused if "error" not in one and not one["result"].get("isError")] == []


async def test_an_export_omits_hidden_columns(path: Path) -> None:
    async with inside(*HIDE, path) as peer:
        result = await peer.call("export", query="SELECT * FROM users", format="csv")
        link = next(one for one in result["content"] if one["type"] == "resource_link")
        read = await peer.request("resources/read", uri=link["uri"])
    assert read["result"]["contents"][0]["text"].splitlines()[:2] == ["id,name,email", "1,Ada,a***"]


async def test_hidden_keys_and_tables_are_not_completed(path: Path) -> None:
    async with inside("--hide", "users.name", "--hide", "vault", path) as peer:
        completions = [await complete(peer, "table", {"db": "data"}), await complete(peer, "key", KEYS)]
    assert completions == [["calls", "log", "orders", "plain", "users", "words"], ["1", "2", "3"]]


KEYS = {"db": "data", "table": "users"}


async def complete(peer: Peer, name: str, arguments: dict[str, str]) -> list[str]:
    """Returns the completions of a variable of a URI."""
    template = "sqlite:///{db}/{table}" + ("/{+key}" if name == "key" else "")
    answer = await peer.request(
        "completion/complete",
        ref={"type": "ref/resource", "uri": template},
        argument={"name": name, "value": ""},
        context={"arguments": arguments},
    )
    values: list[str] = answer["result"]["completion"]["values"]
    return values


@pytest.mark.parametrize(
    ("hide", "reason"),
    [
        ("users.passphras", "--hide: no database has users.passphras"),
        ("user", "--hide: no database has user"),
        ("users.id", "users.id is part of the primary key"),
        ("users.email=substr(", "the --hide expression for users is not valid"),
    ],
)
async def test_an_invalid_hide_option_stops_the_start(path: Path, hide: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        async with inside("--hide", hide, path):
            pass


async def test_hide_can_be_extended_for_a_principal(path: Path) -> None:
    settings = settings_of(app, "--hide", "vault", path)
    own = settings.narrow(Narrowing(databases=["data"], hide=[f"users.{COLUMN}"]))
    assert [one.name for one in own.connection_options.hidden] == ["vault", f"users.{COLUMN}"]
    assert [one.name for one in settings.connection_options.hidden] == ["vault"]
