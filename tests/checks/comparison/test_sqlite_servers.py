"""Known faults of other SQLite servers, tried on two of them and on ours.

Ours has to pass; the others are tried by `make compare`, which prints what each does today.
"""

import json
import re
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path

import anyio
import pytest

from tests.checks.benchmarks import sqlite_peers
from tests.servers.sqlite import malicious
from tests.servers.sqlite.malicious import BOMB, Maker
from tests.wire import Json, Wire

KIND = "SQLite"
PATIENCE = 8.0
"""Seconds in which every call here has to be answered; ours stops a statement after one."""
HOSTS_TAKE = 1_000_000
"""Bytes of a result: what Claude Desktop takes."""
COUNT_OF_ONE = re.compile(r"(affected|affected_rows|count)\W+1\b")


def ordinary(folder: Path) -> Path:
    """Two accounts, and a table of a thousand numbers."""
    numbers = "CREATE TABLE number (n INTEGER PRIMARY KEY);"
    count = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 1000) SELECT * FROM c"
    return malicious.made(folder, f"{numbers} INSERT INTO number {count};")


class Server:
    """One of the servers, with the one database that it serves."""

    def __init__(self, wire: Wire, name: str, database: Path) -> None:
        self.wire = wire
        self.name = name
        self.database = database
        self.tool, self.argument = ("execute_sql", "sql") if name == "dbhub" else ("read_query", "query")

    async def call(self, tool: str, **arguments: object) -> Json | None:
        """The result, or None where the call failed, in whichever way the server says so."""
        with anyio.fail_after(PATIENCE):
            answer = await self.wire.request("tools/call", {"name": tool, "arguments": arguments}, timeout=PATIENCE)
        result = answer.get("result")
        failed = result is None or result.get("isError") or _text(result).startswith(("Error", "Database error"))
        return None if failed else result

    async def read(self, sql: str, **more: object) -> Json | None:
        """The result of one query, None where it failed."""
        return await self.call(self.tool, **{self.argument: sql}, **more)

    async def write(self, sql: str) -> Json | None:
        """The result of one change, None where it failed."""
        return await self.read(sql) if self.name == "dbhub" else await self.call("write_query", query=sql)

    async def rows(self, sql: str) -> str | None:
        """The rows as the server writes them, to be compared; None where the query failed."""
        result = await self.read(sql)
        if result is None:
            return None
        if self.name == "ours":
            return json.dumps(result["structuredContent"]["rows"])
        return (
            json.dumps(json.loads(_text(result))["data"]["statements"][0]["rows"])
            if self.name == "dbhub"
            else _text(result)
        )

    async def columns(self, table: str) -> str | None:
        """What the server tells of a table; None where the call failed."""
        if self.name != "dbhub":
            result = await self.call("describe_table", table_name=table)
            return None if result is None else _text(result)
        where = {"object_type": "column", "schema": "main", "table": table}
        result = await self.call("search_objects", **where, detail_level="summary")
        # It repeats what was asked for.
        return None if result is None else json.dumps(json.loads(_text(result))["data"]["results"])

    async def begin(self, sql: str) -> int:
        """Sends a query, and waits for nothing; its id."""
        params = {"name": self.tool, "arguments": {self.argument: sql}}
        await self.wire.send({"jsonrpc": "2.0", "id": 1_000, "method": "tools/call", "params": params})
        return 1_000

    async def lives(self) -> bool:
        """Whether an ordinary query is answered."""
        return await self.rows("SELECT 'it lives'") is not None

    def stored(self, sql: str) -> list[tuple]:
        """What is in the file."""
        with closing(sqlite3.connect(self.database)) as connection:
            return connection.execute(sql).fetchall()

    def unharmed(self) -> bool:
        """Whether the accounts are those of the beginning, and no other file was made."""
        written = {file.name for file in self.database.parent.iterdir()}
        return self.stored("SELECT id, sum FROM account") == [(1, 100), (2, 200)] and written <= OWN_FILES


OWN_FILES = {"data.db", "data.db-wal", "data.db-shm", "data.db-journal", "data.toml"}


def _text(result: Json) -> str:
    return "".join(part.get("text", "") for part in result["content"])


async def s1_an_endless_query_is_stopped(server: Server) -> bool:
    return await server.read(f"SELECT count(*) FROM ({BOMB})") is None and await server.lives()


async def s1_a_ping_is_answered_meanwhile(server: Server) -> bool:
    id_ = await server.begin(f"SELECT count(*) FROM ({BOMB})")
    # The first ones may be answered before the query is begun.
    pings = [await server.wire.request("ping", timeout=PATIENCE) for _ in range(20)]
    return all("result" in ping for ping in pings) and id_ not in server.wire.responses


async def s1_a_cancelled_query_leaves_the_server_free(server: Server) -> bool:
    id_ = await server.begin(f"SELECT count(*) FROM ({BOMB})")
    await server.wire.notify("notifications/cancelled", {"requestId": id_})
    return await server.lives()


async def s2_a_cross_join_is_stopped(server: Server) -> bool:
    join = "SELECT a.n FROM number a, number b, number c ORDER BY a.n * b.n % 7, c.n LIMIT 10"
    return await server.read(join) is None and await server.lives()


async def s3_a_blob_of_50_mb_is_no_answer_of_50_mb(server: Server) -> bool:
    return len(json.dumps(await server.read("SELECT zeroblob(50000000)"))) < HOSTS_TAKE and await server.lives()


async def s3_a_text_of_500_mb_is_no_answer_either(server: Server) -> bool:
    return len(json.dumps(await server.read("SELECT printf('%.*c', 500000000, 'x')"))) < HOSTS_TAKE


async def s3_a_million_rows_are_no_answer_either(server: Server) -> bool:
    return len(json.dumps(await server.read("SELECT a.n, b.n FROM number a, number b"))) < HOSTS_TAKE


async def s3_a_search_of_one_long_text_in_another_is_stopped(server: Server) -> bool:
    """One instruction of SQLite's machine, which looks at no clock meanwhile."""
    long = "replace(hex(zeroblob(2000000)), '0', 'a')"
    return (
        await server.read(f"SELECT instr({long}, substr({long}, 1, 2000000) || 'b')") is None and await server.lives()
    )


async def s3_a_deep_expression_is_survived(server: Server) -> bool:
    await server.read(f"SELECT {'(' * 5_000}1{')' * 5_000}")
    return await server.lives()


async def s4_attach_makes_no_file(server: Server) -> bool:
    await server.read(f"ATTACH '{server.database.with_name('other.db')}' AS other")
    return server.unharmed()


async def s4_attach_makes_no_file_when_writing_is_allowed(server: Server) -> bool:
    other = server.database.with_name("other.db")
    await server.write(f"ATTACH '{other}' AS other")
    await server.write("CREATE TABLE other.t (x)")
    return server.unharmed()


async def s4_vacuum_into_makes_no_file_when_writing_is_allowed(server: Server) -> bool:
    await server.write(f"VACUUM INTO '{server.database.with_name('copy.db')}'")
    return server.unharmed()


async def s4_a_pragma_changes_nothing(server: Server) -> bool:
    for pragma in ("journal_mode = wal", "writable_schema = ON", "user_version = 7", "query_only = OFF"):
        await server.read(f"PRAGMA {pragma}")
    await server.read("DELETE FROM account")
    return server.unharmed() and server.stored("PRAGMA user_version") == [(0,)]


async def s5_a_delete_behind_with_is_none(server: Server) -> bool:
    await server.read("WITH x AS (SELECT 1) DELETE FROM account")
    return server.unharmed()


async def s5_a_second_statement_is_refused(server: Server) -> bool:
    refused = await server.read("SELECT 1; DELETE FROM account") is None
    return refused and server.unharmed()


async def s5_a_query_may_begin_with_a_comment(server: Server) -> bool:
    return await server.rows("-- who is there?\nSELECT owner FROM account") is not None


async def s5_a_query_may_begin_with_with(server: Server) -> bool:
    return await server.rows("WITH x AS (SELECT owner FROM account) SELECT * FROM x") is not None


async def s5_values_is_a_query(server: Server) -> bool:
    return await server.rows("VALUES (1), (2)") is not None


async def s5_a_change_behind_a_comment_is_told_truly(server: Server) -> bool:
    """Either it is refused and not done, or it is done and its rows are counted."""
    result = await server.write("/* a raise */ UPDATE account SET sum = 300 WHERE id = 2")
    if server.stored("SELECT sum FROM account WHERE id = 2") != [(300,)]:
        return result is None
    return result is not None and COUNT_OF_ONE.search(json.dumps(result)) is not None


async def s6_a_name_with_quotes_is_described(server: Server) -> bool:
    return "TEXT" in (await server.columns('a"b]c`d') or "")


async def s6_a_name_with_sql_in_it_is_not_run(server: Server) -> bool:
    told = await server.columns("account); SELECT owner FROM account; --")
    return (told is None or "Ada" not in told) and server.unharmed()


async def s6_a_table_that_is_not_there_is_an_error(server: Server) -> bool:
    return await server.columns("nowhere") is None


async def s7_a_view_without_end_is_stopped(server: Server) -> bool:
    return await server.read("SELECT count(*) FROM hostile") is None and await server.lives()


async def s7_views_that_double_are_survived(server: Server) -> bool:
    await server.read("SELECT * FROM hostile")
    return await server.lives()


async def s7_a_damaged_page_is_an_error(server: Server) -> bool:
    return await server.read("SELECT count(*) FROM hostile") is None and await server.lives()


async def s7_a_log_without_its_index_is_read(server: Server) -> bool:
    return "Cleo" in (await server.rows("SELECT owner FROM account") or "")


async def s8_integers_of_64_bits_are_exact(server: Server) -> bool:
    return "9007199254740993" in (await server.rows("SELECT 9007199254740993 AS x") or "")


async def s8_infinity_is_not_null(server: Server) -> bool:
    return await server.rows("SELECT 9e999 AS x") not in (None, await server.rows("SELECT NULL AS x"))


async def s8_columns_of_one_name_are_both_there(server: Server) -> bool:
    rows = await server.rows("SELECT 'first' AS x, 'second' AS x")
    return rows is not None and "first" in rows and "second" in rows


async def s8_a_blob_is_told_from_a_text(server: Server) -> bool:
    blob = await server.rows("SELECT x'414243' AS x")
    return blob not in (None, await server.rows("SELECT 'ABC' AS x")) and "b'" not in (blob or "")


async def s8_text_that_is_not_utf_8_is_not_lost(server: Server) -> bool:
    first, other = [await server.rows(f"SELECT CAST(x'{data}' AS TEXT) AS x") for data in ("ff41", "fe41")]
    return None not in (first, other) and first != other


async def s9_a_lock_is_an_error_and_no_hang(server: Server) -> bool:
    with closing(sqlite3.connect(server.database, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        refused = await server.read("SELECT * FROM account") is None
        pinged = "result" in await server.wire.request("ping", timeout=PATIENCE)
    return refused and pinged and await server.lives()


async def s10_a_name_forges_no_line(server: Server) -> bool:
    listing = "search_objects" if server.name == "dbhub" else "list_tables"
    more = {"object_type": "table"} if server.name == "dbhub" else {}
    result = await server.call(listing, **more)
    return result is not None and not any(line.startswith("SYSTEM") for line in _text(result).splitlines())


async def s11_a_page_goes_on_where_the_last_one_ended(server: Server) -> bool:
    """Rows that another process deletes in between are still there, or the answer says that they are not."""
    first = await server.read("SELECT n FROM number ORDER BY n", max_rows=10)
    data = (first or {}).get("structuredContent") or {}
    if "next_cursor" not in data:
        return False
    with closing(sqlite3.connect(server.database)) as other, other:
        other.execute("DELETE FROM number WHERE n <= 15")
    more = {"max_rows": 10, "cursor": data["next_cursor"]}
    second = await server.read("SELECT n FROM number ORDER BY n", **more)
    page = (second or {})["structuredContent"]
    return page["rows"] == [[n] for n in range(11, 21)] or bool(page.get("changed"))


async def s12_a_missing_file_is_not_made(server: Server) -> bool:
    """The server may have ended at once."""
    return not server.database.exists()


async def s13_statements_in_a_list_are_done_all_or_not_at_all(server: Server) -> bool:
    both = ["UPDATE account SET sum = 0 WHERE id = 1", "INSERT INTO account VALUES (2, 'again', 1)"]
    if server.name == "ours":
        refused = await server.call("write_query", query=both) is None
    else:
        refused = await server.write("; ".join(both)) is None
    tried = await server.write("UPDATE account SET sum = 200 WHERE id = 2") is not None
    # Whoever takes no list at all keeps the accounts too, but can't do two things as one.
    takes_a_list = server.name != "archived"
    return refused and tried and takes_a_list and server.unharmed()


async def s14_a_change_by_another_process_is_heard_of(server: Server) -> bool:
    asked = await server.wire.request("resources/subscribe", {"uri": "sqlite:///data/account"}, timeout=PATIENCE)
    if "error" in asked:
        return False
    with closing(sqlite3.connect(server.database)) as other, other:
        other.execute("UPDATE account SET sum = 300 WHERE id = 2")
    with anyio.move_on_after(PATIENCE):
        while not any("updated" in one["method"] for one in server.wire.notifications):
            await server.wire.request("ping", timeout=PATIENCE)
            await anyio.sleep(0.05)
        return True
    return False


Scenario = Callable[[Server], Awaitable[bool]]

SCENARIOS: dict[Scenario, Maker] = {
    one: ordinary for name, one in list(globals().items()) if re.match(r"s\d+_", name)
} | {
    s6_a_name_with_quotes_is_described: malicious.names_that_give_orders,
    s7_a_view_without_end_is_stopped: malicious.view_without_end,
    s7_views_that_double_are_survived: malicious.views_that_double,
    s7_a_damaged_page_is_an_error: malicious.pages_of_noise,
    s7_a_log_without_its_index_is_read: malicious.log_without_its_index,
    s10_a_name_forges_no_line: malicious.names_that_give_orders,
    s12_a_missing_file_is_not_made: lambda folder: folder / "data.db",
}
"""Each with the file that it is tried on."""
WRITING: set[Scenario] = {
    s4_attach_makes_no_file_when_writing_is_allowed,
    s4_vacuum_into_makes_no_file_when_writing_is_allowed,
    s5_a_change_behind_a_comment_is_told_truly,
    s13_statements_in_a_list_are_done_all_or_not_at_all,
}
SERVERS = ("ours", "dbhub", "archived")


def _command(name: str, database: Path, *, writes: bool) -> list[str]:
    if name == "ours":
        return sqlite_peers.ours_command(database, "--timeout", 1, *(["--allow-write"] if writes else []))
    if name == "dbhub":
        return sqlite_peers.dbhub_command(database, writes=writes)
    return sqlite_peers.archived_command(database)


@asynccontextmanager
async def _started(command: list[str], name: str, database: Path) -> AsyncIterator[Server]:
    """One that hangs is killed at the end."""
    async with Wire(command, check=False) as wire:
        with suppress(EOFError if not database.exists() else ()):  # it may end where there is no database
            await wire.initialize()
        yield Server(wire, name, database)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.__name__)
async def test_a_failure_that_was_seen(
    scenario: Scenario, server: str, tmp_path: Path, judge: Callable[[str, str, Awaitable[bool]], Awaitable[None]]
) -> None:
    database = SCENARIOS[scenario](tmp_path)

    async def passes() -> bool:
        async with _started(_command(server, database, writes=scenario in WRITING), server, database) as started:
            return await scenario(started)

    await judge(scenario.__name__, server, passes())
