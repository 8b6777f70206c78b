"""Watching databases: what is told, and how often; by asking every second, and by triggers."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from anyio import to_thread

from servers.common.sql.database import Databases
from servers.common.sql.errors import SqlError
from servers.common.sql.watch import LISTING
from servers.postgres.commits import Commit, CommitCallback, ignore_commit
from servers.postgres.engine.deadline import Limits
from servers.postgres.engine.link import Link, open_link
from servers.postgres.engine.target import parse_target
from servers.postgres.watch.watch import Watch
from tests.postgres_server import PostgresServer, short_folder
from tests.servers.postgres.databases import Database
from tests.servers.postgres.writing import Writing, writing

POLLING = pytest.param(False, id="polling", marks=pytest.mark.slow)
each_way = pytest.mark.parametrize("triggers", [POLLING, pytest.param(True, id="triggers")])

DATABASE, SCHEMA = "postgres:///data", "postgres:///data/schema"
REVIEW, CATEGORY, SALE = "postgres:///data/review", "postgres:///data/category", "postgres:///data/sale"
VISIT = "postgres:///data/visit"
INSERT = "INSERT INTO review VALUES (9, 'SKU-0009', 1, NULL)"


class Source:
    """A database to watch."""

    name = "data"

    def __init__(self, url: str) -> None:
        self.on_committed: CommitCallback = ignore_commit
        self._target = parse_target(f"data={url}", True)

    async def connect(self) -> Link:
        return await open_link(self._target, Limits())

    async def find_name(self, table: str) -> str:
        return table


class Watching:
    """A watch, and what it told."""

    def __init__(self, watch: Watch, source: Source, told: Any) -> None:
        self.watch = watch
        self.source = source
        self._told = told
        self.polling: list[bool] = []
        watch.on_polling = self.polling.append

    async def told(self, count: int = 1) -> list[str]:
        """The next keys that are told."""
        with anyio.fail_after(30):
            return sorted([await self._told.receive() for _ in range(count)])

    async def hears(self) -> None:
        """Waits until triggers tell of all tables."""
        with anyio.fail_after(30):
            while self.watch.health["rows"] != "triggers":
                await anyio.lowlevel.checkpoint()


@pytest.fixture
def database(database: Database) -> Database:
    """The sample, in which its owner may make schemas."""
    database.run(f"GRANT CREATE ON DATABASE {database.name} TO owner")
    return database


@pytest.fixture
def alone() -> Iterator[PostgresServer]:
    """A server that can be stopped, and has not begun."""
    with short_folder() as folder:
        server = PostgresServer(folder)
        yield server
        server.stop()


@asynccontextmanager
async def watching(url: str, *uris: str, triggers: bool = False) -> AsyncIterator[Watching]:
    send, receive = anyio.create_memory_object_stream[str](1_000)
    source = Source(url)
    with send, receive:
        async with anyio.create_task_group() as tasks:
            watch = Watch(
                Databases([source]),
                tasks,
                send.send_nowait,
                lambda: send.send_nowait(LISTING),
                triggers=["data"] if triggers else [],
            )
            held = Watching(watch, source, receive)
            for uri in uris:
                await watch.begin(uri)
            yield held
            tasks.cancel_scope.cancel()


@asynccontextmanager
async def writing_here(database: Database, held: Watching) -> AsyncIterator[Writing]:
    """The connections of our own writer, whose commits the watch is told of."""
    async with writing(database.owner) as writer:
        writer.on_committed = held.source.on_committed
        yield writer


async def elsewhere(database: Database, *statements: str) -> None:
    """Another session runs them, each by itself, and ends."""
    for statement in statements:
        await to_thread.run_sync(database.run, statement)


@each_way
async def test_rows_of_another_session_are_told_of_their_table_and_of_the_database(
    database: Database, triggers: bool
) -> None:
    async with watching(database.owner, REVIEW, CATEGORY, SCHEMA, DATABASE, triggers=triggers) as held:
        if triggers:
            await held.hears()
        await elsewhere(database, INSERT)
        assert await held.told(2) == [DATABASE, REVIEW]


@pytest.mark.slow
@each_way
@pytest.mark.parametrize(
    ("uri", "statement"),
    [
        (SALE, "UPDATE product SET price = price + 1 WHERE sku = 'SKU-0001'"),
        (VISIT, "INSERT INTO visit_2024 VALUES ('2024-01-01', 99, 'x')"),
        (VISIT, "DELETE FROM visit WHERE customer = 7"),
        (CATEGORY, "UPDATE company SET vat = 'x'"),
        (REVIEW, "TRUNCATE review"),
        (REVIEW, "ALTER TABLE review ADD note text"),
        ("postgres:///data/warehouse.movement", "UPDATE warehouse.stock SET quantity = 0 WHERE sku = 'SKU-0001'"),
        ("postgres:///data/best_customer", "REFRESH MATERIALIZED VIEW best_customer"),
        ("postgres:///data/%22Upper%20Case%22", 'DELETE FROM "Upper Case"'),
    ],
)
async def test_a_table_is_told_of_whatever_changes_its_rows_or_columns(
    database: Database, triggers: bool, uri: str, statement: str
) -> None:
    async with watching(database.owner, uri, triggers=triggers) as held:
        await elsewhere(database, statement)
        assert await held.told() == [uri]


@pytest.mark.slow
@each_way
async def test_a_table_that_is_made_later_is_told_of_with_its_rows(database: Database, triggers: bool) -> None:
    uri = "postgres:///data/later"
    async with watching(database.owner, uri, triggers=triggers) as held:
        for statement in ("CREATE TABLE later (a integer)", "INSERT INTO later VALUES (1)"):
            await elsewhere(database, statement)
            assert await held.told() == [uri]


@each_way
async def test_another_table_is_told_of_the_schema_and_the_listing(database: Database, triggers: bool) -> None:
    async with watching(database.owner, SCHEMA, REVIEW, triggers=triggers) as held:
        await held.watch.begin_listing()
        await elsewhere(database, "CREATE TABLE more (a integer)")
        assert await held.told(2) == [LISTING, SCHEMA]


@each_way
async def test_our_own_write_is_told_once(database: Database, triggers: bool) -> None:
    async with (
        watching(database.owner, REVIEW, CATEGORY, triggers=triggers) as held,
        writing_here(database, held) as writer,
    ):
        if triggers:
            await held.hears()
        for _ in range(3):
            await writer.execute("UPDATE review SET stars = 2")
            assert await held.told() == [REVIEW]
        # What is seen of them must not be told before this.
        await writer.execute("UPDATE ONLY category SET name = upper(name)")
        assert await held.told() == [CATEGORY]


@pytest.mark.slow
async def test_a_notice_of_our_own_writer_tells_nothing_new(database: Database) -> None:
    async with watching(database.owner, REVIEW, CATEGORY, triggers=True) as held:
        await held.hears()
        with database.server.connect(database.name) as writer:
            held.source.on_committed(Commit(frozenset({"other"}), False, writer.info.backend_pid))
            writer.execute(INSERT)
        await elsewhere(database, "UPDATE ONLY category SET name = upper(name)")
        assert await held.told() == [CATEGORY]


@pytest.mark.slow
async def test_our_own_change_of_the_schema_is_told_of_everything(database: Database) -> None:
    async with watching(database.owner, REVIEW, SCHEMA, DATABASE) as held, writing_here(database, held) as writer:
        await writer.execute("CREATE TABLE more (a integer)")
        assert await held.told(3) == [DATABASE, REVIEW, SCHEMA]


async def test_other_replicas_are_told_that_we_wrote(sample: Database) -> None:
    wrote: list[str] = []
    async with watching(sample.owner) as held:
        held.watch.on_wrote = wrote.append
        held.source.on_committed(Commit(frozenset({"review"}), False, 0))
        held.source.on_committed(Commit(frozenset(), False, 0))
    assert wrote == [DATABASE]


@pytest.mark.slow
async def test_what_another_replica_wrote_is_looked_for_at_once(database: Database) -> None:
    async with watching(database.owner, REVIEW) as held:
        assert held.watch.handle_remote_change("memo://insights") == ("memo://insights",)
        await elsewhere(database, INSERT)
        assert held.watch.handle_remote_change(DATABASE) == ()
        assert await held.told() == [REVIEW]


@pytest.mark.slow
@each_way
async def test_after_the_database_was_away_all_is_told_once_and_watched_again(
    alone: PostgresServer, triggers: bool
) -> None:
    alone.start()
    alone.run("CREATE TABLE review (a integer); CREATE TABLE category (a integer)")
    async with watching(alone.url(), REVIEW, CATEGORY, triggers=triggers) as held:
        if triggers:
            await held.hears()
        await to_thread.run_sync(alone.restart)
        assert await held.told(2) == [CATEGORY, REVIEW]
        await to_thread.run_sync(alone.run, "INSERT INTO review VALUES (1)")
        assert await held.told() == [REVIEW]


@pytest.mark.slow
async def test_a_database_that_is_away_at_first_is_told_of_when_it_is_there(alone: PostgresServer) -> None:
    async with watching(alone.url(), SCHEMA) as held:
        assert held.watch.health == {"watched": 1, "rows": "polling", "degraded": True}
        await to_thread.run_sync(alone.start)
        assert await held.told() == [SCHEMA]
        assert not held.watch.health["degraded"]


@pytest.mark.slow
async def test_with_the_last_key_the_connections_are_closed(database: Database) -> None:
    others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    async with watching(database.owner, REVIEW, SCHEMA, triggers=True) as held:
        assert database.run(others) == [(2,)]
        held.watch.end(REVIEW)
        held.watch.end(SCHEMA)
        assert held.watch.health["watched"] == 0
        while await to_thread.run_sync(database.run, others) != [(0,)]:
            await anyio.lowlevel.checkpoint()


@pytest.mark.slow
async def test_triggers_are_made_once_and_removed_with_their_schema(database: Database) -> None:
    triggers = "SELECT count(*) FROM pg_trigger WHERE tgname = 'mcp_watch'"
    for _ in range(2):
        async with watching(database.owner, REVIEW, VISIT, SALE, triggers=True) as held:
            await held.hears()
            assert held.polling[-1] is False
            assert database.run(triggers) == [(9,)]
    database.run("DROP SCHEMA mcp_watch CASCADE")
    assert database.run(triggers) == [(0,)]
    database.run(INSERT)


@pytest.mark.slow
async def test_where_the_role_may_not_make_triggers_it_is_asked_every_second(database: Database) -> None:
    async with watching(database.reader, REVIEW, triggers=True) as held:
        assert held.watch.health["rows"] == "polling"
        assert held.polling[-1] is True
        await elsewhere(database, INSERT)
        assert await held.told() == [REVIEW]


@pytest.mark.slow
async def test_where_somebody_writes_for_long_the_trigger_is_done_without(database: Database) -> None:
    with database.server.connect(database.name) as other, other.transaction():
        other.execute(INSERT)
        async with watching(database.owner, REVIEW, triggers=True) as held:
            assert held.watch.health["rows"] == "polling"


async def test_what_is_no_database_of_ours_is_refused(sample: Database) -> None:
    codes = {"https://data/x": "not_found", "postgres:///other/x": "bad_database"}
    async with watching(sample.owner) as held:
        for uri, code in codes.items():
            with pytest.raises(SqlError) as caught:
                await held.watch.begin(uri)
            assert caught.value.code == code
