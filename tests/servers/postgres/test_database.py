"""Updates of subscriptions after changes by other sessions and by tools, with polling and with triggers.

The eras and the updates of each URI are tested in `servers/common/sql/features`, the ways to watch in `watch`.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from anyio import to_thread

from servers.common.sql.errors import SqlError
from servers.common.sql.importing.files import text_opener
from servers.common.sql.importing.imports import Import
from servers.common.sql.jobs import Job
from servers.common.sql.query.formats import ExportRequest
from servers.common.sql.query.query import Query
from servers.common.sql.write.consent import Consent
from servers.common.sql.write.results import Statement
from servers.postgres.database import PostgresDatabase
from servers.postgres.engine.deadline import Limits
from servers.postgres.engine.target import parse_target
from tests.servers.postgres.databases import Database
from tests.servers.postgres.serving import inside
from tests.servers.postgres.writing import LIMITS

UPDATED = "notifications/resources/updated"
ALL = Query("SELECT * FROM review", ())
DELETE = [Statement("DELETE FROM review")]
OVER = Job(0.001)

Act = Callable[[PostgresDatabase, Path], Awaitable[object]]
ACTS: dict[str, Act] = {
    "read": lambda database, _: database.read(ALL, LIMITS.rows, None, None, OVER),
    "export": lambda database, folder: database.export(ALL, ExportRequest(folder / "a.csv", "csv", 100_000), OVER),
    "execute": lambda database, _: database.execute(DELETE, LIMITS, Consent(), OVER, only_tables=False),
    "dry_run": lambda database, _: database.dry_run(DELETE, LIMITS, OVER),
    "import_csv": lambda database, _: database.import_csv(Import("new", text_opener("a\n1\n")), Consent(), OVER),
}

both_ways = pytest.mark.parametrize(
    ("options", "triggers"), [((), 0), pytest.param(("--watch-triggers",), 1, marks=pytest.mark.slow)]
)


@both_ways
async def test_changes_by_others_and_by_tools_send_one_update_each(
    database: Database, options: tuple[str, ...], triggers: int
) -> None:
    uri = f"postgres:///{database.name}/category"
    burst = "; ".join(f"INSERT INTO category VALUES ({n}, 1, {n})" for n in range(100, 150))
    database.run(f"GRANT CREATE ON DATABASE {database.name} TO owner")
    async with inside("--allow-write", *options, database.owner) as peer:
        await peer.request("resources/subscribe", uri=uri)
        await peer.data("write_query", query=["DELETE FROM review", "UPDATE category SET name = name || '!'"])
        await peer.call("write_query", query="UPDATE customer SET mood = 'sad'")
        updates = [await peer.client.other(UPDATED)]
        await to_thread.run_sync(database.run, burst)
        updates.append(await peer.client.other(UPDATED))
        assert peer.client.others == []
    assert [message["params"]["uri"] for message in updates] == [uri, uri]
    made = "SELECT count(DISTINCT tgname) FROM pg_trigger WHERE tgname = 'mcp_watch'"
    assert database.run(made) == [(triggers,)]


async def test_a_list_for_in_gets_advice_to_use_any(sample: Database) -> None:
    async with inside(sample.reader) as peer:
        error = await peer.error("read_query", query="SELECT 1 FROM customer WHERE id IN ($1)", parameters=[[1, 2]])
        rows = await peer.data("read_query", query="SELECT 1 FROM customer WHERE id = ANY ($1)", parameters=[[1, 2]])
    assert error.endswith("A list becomes an array: write = ANY($1) instead of IN ($1).")
    assert len(rows["rows"]) == 2


@pytest.mark.parametrize(
    ("query", "value", "cast"),
    [
        ("SELECT 1 WHERE $1 IS NOT NULL", 1, "$1::text."),
        ("SELECT date '2024-01-01' + $1", 3, "$1::interval."),
        ("SELECT now() - $1", "1 day", "$1::interval."),
    ],
)
async def test_a_parameter_of_an_unknown_type_gets_advice_to_cast_it(
    sample: Database, query: str, value: object, cast: str
) -> None:
    async with inside(sample.reader) as peer:
        assert (await peer.error("read_query", query=query, parameters=[value])).endswith(cast)


async def test_a_named_parameter_needs_no_value_for_a_plan(sample: Database) -> None:
    query = "SELECT ':no' FROM customer WHERE id = :id OR id = :id + 1 OR name = :name"
    async with inside(sample.reader) as peer:
        plan = await peer.text("explain_query", query=query)
        error = await peer.error("explain_query", query=query, analyze=True)
    assert "(customer.id = $1) OR" in plan
    assert "(customer.name = $2)" in plan
    assert error.startswith("bad_parameters: the values of the parameters are missing")


@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
async def test_work_stops_at_the_time_limit_of_its_job(sample: Database, tmp_path: Path, act: Act) -> None:
    database = PostgresDatabase(parse_target(sample.owner, True), Limits(), 2)
    with pytest.raises(SqlError) as raised:
        await act(database, tmp_path)
    await database.close()
    # Opening a connection takes longer than the time limit.
    assert raised.value.code in ("timeout", "unavailable")


@pytest.mark.parametrize("tool", ["read_query", "export", "explain_query"])
async def test_each_reading_tool_suggests_names(sample: Database, tool: str) -> None:
    async with inside(sample.reader) as peer:
        assert "\nreview\n" in await peer.error(tool, query="SELECT * FROM reviw")


async def test_a_cursor_is_valid_only_for_its_database(sample: Database) -> None:
    query = "SELECT n FROM generate_series(1, 9) AS n"
    names = [f"{name}={sample.reader}" for name in ("one", "other")]
    async with inside(*names) as peer:
        cursor = (await peer.data("read_query", query=query, max_rows=2, database="one"))["next_cursor"]
        error = await peer.error("read_query", query=query, max_rows=2, database="other", cursor=cursor)
        rest = await peer.data("read_query", query=query, max_rows=2, database="one", cursor=cursor)
    assert error.startswith("bad_cursor: ")
    assert rest["rows"] == [[3], [4]]


@pytest.mark.parametrize(("dry_run", "done"), [(True, "dry run: "), (False, "committed; ")])
async def test_a_statement_with_an_exclusive_lock_does_not_wait_for_a_cursor(
    database: Database, dry_run: bool, done: str
) -> None:
    script = "UPDATE customer SET mood = 'sad'; ALTER TABLE review ADD note text"
    async with inside("--allow-write", database.owner) as peer:
        await peer.data("read_query", query="SELECT * FROM review", max_rows=1)
        assert (await peer.text("write_query", query=script, dry_run=dry_run)).startswith(done)
