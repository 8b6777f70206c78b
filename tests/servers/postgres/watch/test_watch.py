"""Watching databases by polling every second, and by triggers."""

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
from servers.postgres.watch import watched_database
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
    """A watch, and its updates."""

    def __init__(self, watch: Watch, source: Source, updates: Any) -> None:
        self.watch = watch
        self.source = source
        self._updates = updates
        self.polling: list[bool] = []
        watch.on_polling = self.polling.append

    async def next_updates(self, count: int = 1) -> list[str]:
        """Returns the sorted keys of the next updates."""
        with anyio.fail_after(30):
            return sorted([await self._updates.receive() for _ in range(count)])

    async def wait_for_triggers(self) -> None:
        """Waits until all tables have triggers."""
        with anyio.fail_after(30):
            while self.watch.health["rows"] != "triggers":
                await anyio.lowlevel.checkpoint()


@pytest.fixture
def database(database: Database) -> Database:
    """The sample, where its owner may create schemas."""
    database.run(f"GRANT CREATE ON DATABASE {database.name} TO owner")
    return database


@pytest.fixture
def stopped_server() -> Iterator[PostgresServer]:
    """A separate server, not yet started, which the test may stop."""
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
            watched = Watching(watch, source, receive)
            for uri in uris:
                await watch.begin(uri)
            yield watched
            tasks.cancel_scope.cancel()


@asynccontextmanager
async def server_writer(database: Database, watched: Watching) -> AsyncIterator[Writing]:
    """Yields a writer of the server, whose commits the watch gets."""
    async with writing(database.owner) as writer:
        writer.on_committed = watched.source.on_committed
        yield writer


async def run_in_another_session(database: Database, *statements: str) -> None:
    """Runs the statements in another session, each in its own transaction."""
    for statement in statements:
        await to_thread.run_sync(database.run, statement)


@each_way
async def test_rows_changed_by_another_session_update_table_and_database(database: Database, triggers: bool) -> None:
    async with watching(database.owner, REVIEW, CATEGORY, SCHEMA, DATABASE, triggers=triggers) as watched:
        if triggers:
            await watched.wait_for_triggers()
        await run_in_another_session(database, INSERT)
        assert await watched.next_updates(2) == [DATABASE, REVIEW]


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
async def test_every_change_of_rows_or_columns_updates_the_table(
    database: Database, triggers: bool, uri: str, statement: str
) -> None:
    async with watching(database.owner, uri, triggers=triggers) as watched:
        await run_in_another_session(database, statement)
        assert await watched.next_updates() == [uri]


@pytest.mark.slow
@each_way
async def test_a_table_created_later_is_updated_with_its_rows(database: Database, triggers: bool) -> None:
    uri = "postgres:///data/later"
    async with watching(database.owner, uri, triggers=triggers) as watched:
        for statement in ("CREATE TABLE later (a integer)", "INSERT INTO later VALUES (1)"):
            await run_in_another_session(database, statement)
            assert await watched.next_updates() == [uri]


@each_way
async def test_a_new_table_updates_schema_and_listing(database: Database, triggers: bool) -> None:
    async with watching(database.owner, SCHEMA, REVIEW, triggers=triggers) as watched:
        await watched.watch.watch_table_list()
        await run_in_another_session(database, "CREATE TABLE more (a integer)")
        assert await watched.next_updates(2) == [LISTING, SCHEMA]


@each_way
async def test_a_write_by_the_server_sends_one_update(database: Database, triggers: bool) -> None:
    async with (
        watching(database.owner, REVIEW, CATEGORY, triggers=triggers) as watched,
        server_writer(database, watched) as writer,
    ):
        if triggers:
            await watched.wait_for_triggers()
        for _ in range(3):
            await writer.execute("UPDATE review SET stars = 2")
            assert await watched.next_updates() == [REVIEW]
        # The notifications of these writes must not send another update before this.
        await writer.execute("UPDATE ONLY category SET name = upper(name)")
        assert await watched.next_updates() == [CATEGORY]


@pytest.mark.slow
async def test_a_notification_of_the_servers_own_write_is_ignored(database: Database) -> None:
    async with watching(database.owner, REVIEW, CATEGORY, triggers=True) as watched:
        await watched.wait_for_triggers()
        with database.server.connect(database.name) as writer:
            watched.source.on_committed(Commit(frozenset({"other"}), False, writer.info.backend_pid))
            writer.execute(INSERT)
        await run_in_another_session(database, "UPDATE ONLY category SET name = upper(name)")
        assert await watched.next_updates() == [CATEGORY]


@pytest.mark.slow
async def test_a_schema_change_by_the_server_updates_everything(database: Database) -> None:
    async with (
        watching(database.owner, REVIEW, SCHEMA, DATABASE) as watched,
        server_writer(database, watched) as writer,
    ):
        await writer.execute("CREATE TABLE more (a integer)")
        assert await watched.next_updates(3) == [DATABASE, REVIEW, SCHEMA]


async def test_a_write_is_published_to_other_replicas(sample: Database) -> None:
    wrote: list[str] = []
    async with watching(sample.owner) as watched:
        watched.watch.on_own_write = wrote.append
        watched.source.on_committed(Commit(frozenset({"review"}), False, 0))
        watched.source.on_committed(Commit(frozenset(), False, 0))
    assert wrote == [DATABASE]


@pytest.mark.slow
async def test_a_write_by_another_replica_is_checked_at_once(database: Database) -> None:
    async with watching(database.owner, REVIEW) as watched:
        assert watched.watch.handle_remote_change("memo://insights") == ("memo://insights",)
        await run_in_another_session(database, INSERT)
        assert watched.watch.handle_remote_change(DATABASE) == ()
        assert await watched.next_updates() == [REVIEW]


@pytest.mark.slow
@each_way
async def test_after_a_restart_everything_is_updated_once_and_watched_again(
    stopped_server: PostgresServer, triggers: bool
) -> None:
    stopped_server.start()
    stopped_server.run("CREATE TABLE review (a integer); CREATE TABLE category (a integer)")
    async with watching(stopped_server.url(), REVIEW, CATEGORY, triggers=triggers) as watched:
        if triggers:
            await watched.wait_for_triggers()
        await to_thread.run_sync(stopped_server.restart)
        assert await watched.next_updates(2) == [CATEGORY, REVIEW]
        await to_thread.run_sync(stopped_server.run, "INSERT INTO review VALUES (1)")
        assert await watched.next_updates() == [REVIEW]


@pytest.mark.slow
async def test_rows_changed_while_the_listening_connection_was_lost_update_the_table(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Impatient:
        """Listens again before the next check, which would find the change without notifications."""

        def __getattr__(self, name: str) -> Any:
            return getattr(anyio, name)

        async def sleep(self, _: float) -> None:
            await anyio.lowlevel.checkpoint()

    async with watching(database.owner, REVIEW, triggers=True) as watched:
        await watched.wait_for_triggers()
        connect = watched.source.connect

        async def change_and_connect() -> Any:
            await run_in_another_session(database, INSERT)
            return await connect()

        monkeypatch.setattr(watched.source, "connect", change_and_connect)
        monkeypatch.setattr(watched_database, "anyio", Impatient())
        listening = "datname = current_database() AND query ILIKE 'listen%'"
        end = f"SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity WHERE {listening}"
        assert await to_thread.run_sync(database.run, end) == [(True,)]
        assert await watched.next_updates() == [REVIEW]


@pytest.mark.slow
async def test_a_database_unavailable_at_first_sends_an_update_when_available(stopped_server: PostgresServer) -> None:
    async with watching(stopped_server.url(), SCHEMA) as watched:
        assert watched.watch.health == {"watched": 1, "rows": "polling", "degraded": True}
        await to_thread.run_sync(stopped_server.start)
        assert await watched.next_updates() == [SCHEMA]
        assert not watched.watch.health["degraded"]


@pytest.mark.slow
async def test_the_connections_are_closed_with_the_last_key(database: Database) -> None:
    others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    async with watching(database.owner, REVIEW, SCHEMA, triggers=True) as watched:
        assert database.run(others) == [(2,)]
        watched.watch.end(REVIEW)
        watched.watch.end(SCHEMA)
        assert watched.watch.health["watched"] == 0
        while await to_thread.run_sync(database.run, others) != [(0,)]:
            await anyio.lowlevel.checkpoint()


@pytest.mark.slow
async def test_triggers_are_created_once_and_removed_with_their_schema(database: Database) -> None:
    triggers = "SELECT count(*) FROM pg_trigger WHERE tgname = 'mcp_watch'"
    for _ in range(2):
        async with watching(database.owner, REVIEW, VISIT, SALE, triggers=True) as watched:
            await watched.wait_for_triggers()
            assert watched.polling[-1] is False
            assert database.run(triggers) == [(9,)]
    database.run("DROP SCHEMA mcp_watch CASCADE")
    assert database.run(triggers) == [(0,)]
    database.run(INSERT)


@pytest.mark.slow
async def test_a_role_without_the_right_to_create_triggers_is_polled(database: Database) -> None:
    async with watching(database.reader, REVIEW, triggers=True) as watched:
        assert watched.watch.health["rows"] == "polling"
        assert watched.polling[-1] is True
        await run_in_another_session(database, INSERT)
        assert await watched.next_updates() == [REVIEW]


@pytest.mark.slow
async def test_a_table_locked_for_long_is_polled_without_a_trigger(database: Database) -> None:
    with database.server.connect(database.name) as other, other.transaction():
        other.execute(INSERT)
        async with watching(database.owner, REVIEW, triggers=True) as watched:
            assert watched.watch.health["rows"] == "polling"


async def test_watching_an_unknown_database_is_refused(sample: Database) -> None:
    codes = {"https://data/x": "not_found", "postgres:///other/x": "bad_database"}
    async with watching(sample.owner) as watched:
        for uri, code in codes.items():
            with pytest.raises(SqlError) as caught:
                await watched.watch.begin(uri)
            assert caught.value.code == code
