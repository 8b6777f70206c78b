"""What stays true in `servers` in whatever order two calls overlap, and if one of them is cancelled at any await."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import anyio
import httpx
import pytest
from anyio.lowlevel import checkpoint

from servers.common.files.names import uri
from servers.common.files.narrowing import narrow
from servers.common.files.rooted_files import RootedFiles
from servers.common.files.roots import Roots
from servers.common.sql.database import Databases
from servers.common.sql.query.cursors import Cursors, Position
from servers.common.sql.query.pages import AnswerLimits
from servers.common.sql.query.query import Query
from servers.common.workers.pool import Limits, Pool, Program, Worker
from servers.fetch.features.state import LazyFetcher
from servers.fetch.load.cache import StoredAnswer
from servers.fetch.load.exchange import Answer
from servers.fetch.load.loader import Loader, LoadRules
from servers.fetch.load.robots import Robots
from servers.fetch.load.shared_cache import SharedEntries
from servers.fetch.load.throttling import FREE_BYTES, ByteBudget, Slots
from servers.fetch.network.streams import Http2Stream
from servers.fetch.pages.watch import PageState
from servers.fetch.pages.watch import Watcher as PageWatcher
from servers.fetch.read.page import Page as ReadPage
from servers.filesystem.search.page import Page
from servers.filesystem.watch.journal import Journal, Selection
from servers.filesystem.watch.subscriptions import GlobTrees, Listings
from servers.filesystem.watch.watcher import Watcher
from servers.gateway.bridge import Upstream
from servers.gateway.bridge.calls.dedicated_sessions import DedicatedSession, _ProcessLimit
from servers.gateway.bridge.calls.pool import SessionPool
from servers.gateway.bridge.tasks import UpstreamTasks
from servers.gateway.bridge.watching import listen_streams
from servers.gateway.bridge.watching.listen_streams import ListenStreams
from servers.gateway.bridge.watching.resources import ResourceWatcher, key_of
from servers.gateway.joined.list_cache import TOOLS, ListCache
from servers.gateway.joined.subscriptions import Subscriptions
from servers.gateway.rules.guard import Guard
from servers.postgres.engine.deadline import Deadline
from servers.postgres.engine.pool import Pool as PostgresPool
from servers.postgres.query import plans
from servers.postgres.query.snapshots import Snapshots
from servers.postgres.watch.watch import Watch as PostgresWatch
from servers.postgres.watch.watched_database import WatchedPostgresDatabase
from servers.sqlite.engine.pool import Pool as SqlitePool
from servers.sqlite.watch.watch import Watch as SqliteWatch
from servers.sqlite.watch.watched_database import WatchedSqliteDatabase
from shared.client.options import ClientOptions
from shared.concurrency import TaskSet
from shared.errors import ToolError
from shared.program.files.entries import Place
from shared.protocol.session.client_events import Notified
from shared.server.dispatch.changes import Changes
from tests.clock import Clock
from tests.interleaving import CANCELLED, Alone, Scenario, in_every_order

START = Position(b"request", 0, b"state", False)
URL = httpx.URL("https://site.example/a")


async def do_nothing(*_: object) -> None:
    """Do nothing."""


async def stop(tasks: TaskSet, errors: list[BaseException]) -> None:
    await tasks.stop()
    assert errors == []


# What is lent, and given back


async def slot_of_a_host() -> Scenario:
    slots, alone = Slots(1, 1), Alone()

    async def load(host: str) -> None:
        async with slots.occupy(host), alone:
            pass

    yield load("a"), load("a")
    await load("b")
    assert (slots._request_count, slots._all.value) == (0, 1)


async def bytes_of_large_pages() -> Scenario:
    budget, large = ByteBudget(2 * FREE_BYTES), 2 * FREE_BYTES

    async def load() -> None:
        with budget.share() as share:
            for size in (large, 2 * large):
                await share.ensure(size, size)
                assert budget.in_use == size
                await checkpoint()

    yield load(), load()
    await load()
    assert (budget.in_use, len(budget._waiting)) == (0, 0)


class Slow(Worker):
    """A worker whose process takes a while."""

    def __init__(self) -> None:
        super().__init__(Program("module", "page"), Limits(5, 64))
        self.state = "ended"

    async def _prepare(self, kind: str) -> None:
        await checkpoint()
        self.state = "idle" if self.state == "ended" else self.state

    async def _exchange(self, head: dict[str, Any], body: bytes) -> tuple[dict[str, Any], bytes]:
        assert self.state == "idle"
        self.state = "busy"
        await checkpoint()
        self.state = "idle"
        return head, body

    async def end(self) -> None:
        self.state = "ended"


async def workers() -> Scenario:
    pool = Pool(Program("module", "page"), 1, Limits(5, 64))
    worker = Slow()
    pool._workers, pool._idle = [worker], [worker]
    results = yield pool.ask("html", {}, b"a"), pool.ask("html", {}, b"b")
    assert [result if result is CANCELLED else result[1] for result in results] == [
        CANCELLED if result is CANCELLED else body for result, body in zip(results, (b"a", b"b"), strict=True)
    ]
    assert (await pool.ask("html", {}, b"c"))[1] == b"c"
    assert pool._idle == [worker]


class Lent:
    """A connection that fails if two calls use it, or if it is used after its end."""

    is_shared = False

    def __init__(self) -> None:
        self.is_broken = self.in_transaction = self.is_lent = False

    async def open(self) -> None:
        await checkpoint()
        self.lend()

    def lend(self) -> None:
        assert not self.is_lent
        self.is_lent = True

    def when_idle(self, callback: Callable[[], None]) -> None:
        self.is_lent = False
        callback()

    async def begin(self, *_: object, **__: object) -> None:
        assert not self.in_transaction
        assert not self.is_broken
        self.in_transaction = True
        await checkpoint()

    async def roll_back(self) -> None:
        await checkpoint()
        self.in_transaction = False

    def close(self) -> None:
        self.is_broken = True


async def connections_to_sqlite() -> Scenario:
    connections: list[Lent] = []

    def make() -> Any:
        connections.append(Lent())
        return connections[-1]

    pool = SqlitePool(make, 1, 5.0)

    async def read() -> None:
        async with pool.lend() as connection:
            assert connection.is_lent
            await checkpoint()

    results = yield read(), read()
    assert set(results) <= {None, CANCELLED}
    await read()
    assert (pool._slots.value, len(pool._idle), len(pool._unavailable)) == (1, 1, 0)


async def connections_to_postgres() -> Scenario:
    links: list[Lent] = []

    async def connect() -> Any:
        await checkpoint()
        links.append(Lent())
        return links[-1]

    pool = PostgresPool(connect, 1, 5.0)

    async def read() -> None:
        async with pool.transaction(Deadline(5.0)):
            await checkpoint()

    await read()
    results = yield read(), read()
    assert set(results) <= {None, CANCELLED}
    await read()
    assert pool._slots.value == 1
    is_open = [link for link in links if not link.is_broken]
    assert is_open == pool._idle == [*pool._links]
    assert not is_open[0].in_transaction


async def connections_of_a_closed_pool() -> Scenario:
    links: list[Lent] = []

    async def connect() -> Any:
        await checkpoint()
        links.append(Lent())
        return links[-1]

    async def close() -> None:
        await checkpoint()
        await pool.close()

    pool = PostgresPool(connect, 1, 5.0)

    async def read() -> None:
        async with pool.transaction(Deadline(5.0)):
            await checkpoint()

    _, closed = yield read(), close()
    assert closed is CANCELLED or all(link.is_broken for link in links)


async def sources_of_cursors() -> Scenario:
    released: list[str] = []

    async def release(source: str) -> None:
        with anyio.CancelScope(shield=True):
            await checkpoint()
            released.append(source)

    async def take() -> None:
        await checkpoint()
        if (source := cursors.take(cursor)) is not None:
            await release(source)

    async def make_room() -> None:
        await checkpoint()
        await cursors.release_oldest(lambda _: True)

    cursors = Cursors[str](release, 0.0)
    cursor = cursors.make_cursor(START, "a")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cursors.run)
        yield take(), make_room()
        tasks.cancel_scope.cancel()
    assert released == ["a"]


async def rows_of_a_query() -> Scenario:
    class Rest(NamedTuple):
        can_resume: bool = True

    class Rows(NamedTuple):
        columns: Any = SimpleNamespace(names=("a",), declared=("int",))
        page: Any = SimpleNamespace(rows=[[1]])
        rest: Rest | None = Rest()
        snapshot: str = "1:1:"
        duration: float = 0.0

    async def run(link: Any, *_: object) -> Rows:
        assert link.in_transaction
        await checkpoint()
        return Rows()

    async def connect() -> Any:
        return Lent()

    pool = PostgresPool(connect, 2, 5.0)
    unused: Any = None
    snapshots = Snapshots("shop", pool, unused, 5.0)
    query, limits = Query("SELECT 1", ()), AnswerLimits(1, 1_000, 1_000)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("run_query", "resume"):
            patch.setattr(f"servers.postgres.query.snapshots.{name}", run)
        first = await snapshots.read(query, limits, "ada", None)
        results = yield snapshots.read(query, limits, "ada", first.cursor), snapshots.read(query, limits, "ada", None)
        assert [result.changed for result in results if result is not CANCELLED and result.changed] == []
        assert pool._slots.value == 2 - snapshots._cursors.count(lambda _: True)
        await snapshots.release()
    assert pool._slots.value == 2
    assert [link.in_transaction for link in pool._links] == [False] * len(pool._idle)


async def prepared_statement_of_a_plan() -> Scenario:
    prepared: set[str] = set()

    class Session:
        async def run(self, sql: str, *_: object, prefix: str = "", **__: object) -> None:
            prepared.update({"plan"} if prefix.startswith("PREPARE") else ())
            prepared.difference_update({"plan"} if sql.startswith("DEALLOCATE") else ())
            await checkpoint()

        async def ask(self, *_: object) -> list[tuple[int]]:
            await checkpoint()
            return [(0,)]

    session: Any = Session()
    yield plans._explain_generically(session, "SELECT 1", "EXPLAIN", runs=False), checkpoint()
    assert prepared == set()


async def frames_of_a_connection() -> Scenario:
    alone = Alone()

    class Inner:
        async def write(self, *_: object) -> None:
            async with alone:
                pass

    inner: Any = Inner()
    stream = Http2Stream(inner)
    results = yield stream.write(b"a"), stream.write(b"b")
    assert set(results) <= {None, CANCELLED}


async def processes_of_sessions() -> Scenario:
    limit, alone = _ProcessLimit(1), Alone()

    class Session:
        is_closable = True

        def __init__(self, client: str) -> None:
            self.link, self.closing = SimpleNamespace(client=client), anyio.Event()

        def close(self) -> None:
            self.closing.set()

    async def run(session: Any) -> None:
        with anyio.move_on_after(0.001):
            async with limit.reserve(session), alone:
                await session.closing.wait()

    results = yield run(Session("ada")), run(Session("eve"))
    assert set(results) <= {None, CANCELLED}
    await run(Session("bob"))
    assert (limit._open, limit._portions._used) == ({}, 0)


async def sessions_of_a_pool() -> Scenario:
    errors: list[BaseException] = []
    tasks = TaskSet(errors.append)

    class Server:
        """A session on the server."""

        def __init__(self) -> None:
            self.connected = self.is_idle = True
            self.server = SimpleNamespace(runs_tools_as_tasks=True)
            self.raw = SimpleNamespace(list_tools=self.list_tools)

        async def list_tools(self) -> list[Any]:
            await checkpoint()
            return []

        async def exchange(self, _method: str, params: Any, *_: Any, **__: Any) -> Any:
            assert self.is_idle
            self.is_idle = False  # for good if this is cancelled: messages of the call may still arrive
            await anyio.sleep(0.001)
            self.is_idle = True
            return dict(params)

        async def ended(self) -> None:
            await anyio.sleep_forever()

    @asynccontextmanager
    async def connect(_options: Any) -> AsyncIterator[Any]:
        await checkpoint()
        yield Server()

    def context(owner: str) -> Any:
        call = SimpleNamespace(
            method=SimpleNamespace(name="prompts/get", multi_round=True),
            round=SimpleNamespace(carried=None, answers={}, number=1),
            raw={"name": owner},
            token=None,
            task=None,
        )
        peer = SimpleNamespace(info=None, capabilities={}, log_level=None, may_request_tasks=False)
        return SimpleNamespace(owner=owner, call=call, peer=peer)

    pool = SessionPool(Upstream("a", connect), tasks, lambda _: None, max_sessions=1)
    results = yield pool.call(context("ada"), None), pool.call(context("ada"), None)
    assert [result for result in results if result not in ({"name": "ada"}, CANCELLED)] == [], results
    assert (await pool.call(context("eve"), None))["name"] == "eve"
    assert (len(pool), pool._waiting, len(pool.pending_calls)) == (1, 0, 0)
    assert [session.call for session in pool._sessions] == [None]
    pool.close()
    await stop(tasks, errors)


async def reopened_session_of_a_client() -> Scenario:
    errors: list[BaseException] = []
    tasks, states = TaskSet(errors.append), list[str]()

    class Client:
        def __init__(self) -> None:
            self.connected, self._lost = True, anyio.Event()

        def lose(self) -> None:
            self.connected = False
            self._lost.set()

        async def ended(self) -> None:
            await self._lost.wait()

    @asynccontextmanager
    async def connect(_: Any) -> AsyncIterator[Any]:
        await checkpoint()
        states.append("opened")
        yield Client()

    class Listener:
        async def on_reopen(self, _: Any) -> None:
            await checkpoint()
            states.append("restored")

    async def call() -> None:
        await session.open()
        assert states == ["opened", "opened", "restored"]

    connection: Any = SimpleNamespace(upstream=Upstream("a", connect), wait_until_up=do_nothing)
    link: Any = SimpleNamespace(client="ada", is_busy=False)
    listener: Any = Listener()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("shared.client.connection.restart.FIRST_SECONDS", 0.0)
        session = DedicatedSession(connection, link, ClientOptions(), tasks, listener, None)
        client: Any = await session.open()
        client.lose()
        results = yield call(), call()
        assert set(results) <= {None, CANCELLED}
    await stop(tasks, errors)


# What is loaded once


async def rules_of_a_site() -> Scenario:
    requests = 0

    async def fetch(url: httpx.URL) -> Answer:
        nonlocal requests
        requests += 1
        await checkpoint()
        return Answer(url, 200, httpx.Headers(), b"User-agent: *\nDisallow: /b", 0)

    robots = Robots(fetch, "tester", 5)
    results = yield robots.check(URL), robots.check(URL)
    assert set(results) <= {None, CANCELLED}
    assert requests == 1 or CANCELLED in results
    await robots.check(URL)
    assert robots._size == sum(rules.size for rules in robots._cached.values())


async def fetcher() -> Scenario:
    opened: list[Any] = []

    @asynccontextmanager
    async def open_fetcher(*_: object) -> AsyncIterator[Any]:
        await checkpoint()
        opened.append(SimpleNamespace(reader=SimpleNamespace(warm=do_nothing)))
        yield opened[-1]
        opened.pop()

    async with anyio.create_task_group() as tasks:
        stack: Any = SimpleNamespace(enter_async_context=lambda context: context.__aenter__())
        unused: Any = None
        lazy = LazyFetcher(unused, tuple, None, tasks, stack)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("servers.fetch.features.state._import_fetcher", lambda: open_fetcher)
            results = yield lazy.get(), lazy.get()
            last = await lazy.get()
        assert [result for result in results if result not in (CANCELLED, last)] == []
        assert opened == [last]


async def tools_of_a_task_server() -> Scenario:
    listed, support = 0, "required"

    async def list_tools() -> list[Any]:
        nonlocal listed
        listed += 1
        tool = {"name": "a", "execution": {"taskSupport": support}}
        await checkpoint()
        return [tool]

    async def change() -> None:
        nonlocal support
        await checkpoint()
        support = "forbidden"
        tasks.on_server_message(Notified("notifications/tools/list_changed", {}))

    client: Any = SimpleNamespace(
        server=SimpleNamespace(runs_tools_as_tasks=True), raw=SimpleNamespace(list_tools=list_tools)
    )
    call = SimpleNamespace(method=SimpleNamespace(name="tools/call"), raw={}, task=None)
    context: Any = SimpleNamespace(call=call, peer=SimpleNamespace(may_request_tasks=False))
    tasks = UpstreamTasks()
    yield tasks.task_param(client, context, "a"), change()
    assert await tasks.task_param(client, context, "a") == ({} if support == "required" else None)
    assert listed <= 2


# What is stored while it changes


async def list_of_a_joined_server(*, is_listed: bool = True) -> Scenario:
    version, alone = 1, Alone()

    async def ask(*_: object) -> dict[str, Any]:
        sent = version
        async with alone:
            await checkpoint()
        return {"tools": [{"name": f"v{sent}", "inputSchema": {"type": "object"}}]}

    async def change() -> None:
        nonlocal version
        await checkpoint()
        version = 2
        cache.forget()
        if is_listed:
            assert [entry["name"] for entry in (await cache.fetch_if_stale(context)).entries] == ["v2"]

    server: Any = SimpleNamespace(
        name="a", ask=ask, running=True, needs_fresh_lists=False, has_capability=lambda _: True
    )
    context: Any = SimpleNamespace(link=SimpleNamespace(session=object()), peer=SimpleNamespace(has_handshake=True))
    cache = ListCache(server, TOOLS)
    _, changed = yield cache.fetch_if_stale(context), change()
    assert changed in (None, CANCELLED), changed
    assert [entry["name"] for entry in (await cache.fetch_if_stale(context)).entries] == [f"v{version}"]


async def tools_of_a_guard() -> Scenario:
    version = 1

    async def list_tools() -> list[dict[str, Any]]:
        sent = version
        await checkpoint()
        return [{"name": "a", "description": f"v{sent}"}]

    async def call(link: object) -> None:
        await guard.check("a", "a", link, list_tools)  # type: ignore[arg-type]
        assert version == 1

    async def change() -> None:
        nonlocal version
        await checkpoint()
        version = 2
        guard.on_change(SimpleNamespace(kind="tools"))  # type: ignore[arg-type]
        with pytest.raises(ToolError):
            await guard.check("a", "a", links[0], list_tools)

    pins: Any = SimpleNamespace(
        matches=lambda tool: tool["description"] == "v1", digest=lambda _: "pinned", pin_first_pages=lambda _: None
    )
    rules: Any = SimpleNamespace(shown_name=lambda name: name)
    links: list[Any] = [object()]
    guard = Guard("other", rules, pins)
    called, changed = yield call(links[0]), change()
    assert changed in (None, CANCELLED)
    assert called in (None, CANCELLED) or isinstance(called, ToolError)
    if version == 2:
        with pytest.raises(ToolError):
            await guard.check("a", "a", links[0], list_tools)
    assert guard._listing_locks == {}


async def entries_for_replicas() -> Scenario:
    blobs: dict[str, bytes] = {}

    class Blobs:
        async def put(self, data: bytes, _seconds: float, name: str | None = None) -> str:
            await checkpoint()
            blobs[str(name)] = data
            return str(name)

        async def get(self, name: str) -> bytes | None:
            return blobs.get(name)

    clock = Clock()
    entries = SharedEntries(Blobs(), "page", ReadPage, 60.0, room=100, clock=clock)
    await entries.put(ReadPage("old", "text"), 3, "old")
    clock.now = 61.0
    page = ReadPage("text", "text")
    yield entries.put(page, 4, "a"), entries.put(page, 4, "a")
    assert entries._used_bytes == sum(size for _, size in entries._own_entries.values())


async def response_of_another_replica() -> Scenario:
    old = StoredAnswer(200, {"cache-control": "max-age=60"}, b"old", 3, (), 1_000.0, 0.0)
    new = old._replace(body=b"new", confirmed_at=2_000.0)

    class Shared:
        async def find(self, *_: object) -> StoredAnswer:
            await checkpoint()
            return old

        async def put(self, *_: object) -> None:
            await checkpoint()

    unused: Any = None
    shared: Any = Shared()
    loader = Loader(unused, unused, LoadRules("agent"), shared)
    yield loader._find_cached("http://a/", {}), loader._store(httpx.URL("http://a/"), new, {})
    assert loader._cache.find("http://a/", {}) == new


# What is watched, for as long as it is subscribed to


class Clients:
    """Ada subscribes, while Bob leaves another resource and visits the same one. Then exactly what clients have
    subscribed to is watched."""

    def __init__(
        self,
        begin: Callable[[Any, str], Coroutine[Any, Any, str]],
        end: Callable[[str], Coroutine[Any, Any, None] | None],
        watched: Callable[[], Collection[str]],
    ) -> None:
        async def end_key(key: str) -> None:
            if (ending := end(key)) is not None:
                await ending

        self.changes = Changes()
        self.changes.on_subscribe, self.changes.on_unsubscribe = begin, end_key
        self._watched = watched
        self._of_ada: list[str] = []
        self._of_bob: list[str] = []

    async def enter(self, uri: str) -> None:
        self._of_bob.append(await self.changes.subscribe(None, uri, "bob"))

    async def subscribe(self, uri: str) -> None:
        self._of_ada.append(await self.changes.subscribe(None, uri, "ada"))

    async def visit(self, uri: str) -> None:
        try:
            await self.changes.unsubscribe([self._of_bob.pop()], "bob")
            await self.enter(uri)
            await checkpoint()
        finally:
            await self.changes.unsubscribe(self._of_bob, "bob")

    async def check(self, results: Iterable[Any]) -> None:
        assert [result for result in results if result not in (None, CANCELLED)] == []
        assert sorted(self._watched()) == sorted(self._of_ada)
        await self.changes.unsubscribe(self._of_ada, "ada")
        assert (len(self._watched()), self.changes._total) == (0, 0)


async def subscriptions_to_pages(*, of_both: bool) -> Scenario:
    class Pages:
        def normalize(self, url: str) -> tuple[str, str]:
            return url, "site"

        async def check(self, *_: object, **__: object) -> PageState:
            await checkpoint()
            return PageState("1", 0.0, 0.0)

    async def open_pages() -> Pages:
        await checkpoint()
        return Pages()

    async with anyio.create_task_group() as tasks:
        watcher = PageWatcher(open_pages, lambda _: None, tasks, 60.0)
        clients = Clients(lambda _, url: watcher.watch(url, "me"), watcher.unwatch, lambda: watcher._pages)
        await clients.enter("http://a/" if of_both else "http://b/")
        results = yield clients.subscribe("http://a/"), clients.visit("http://a/")
        await clients.check(results)
        tasks.cancel_scope.cancel()


class Subscriber:
    """The bridge's subscriptions at its server."""

    client = None

    def __init__(self) -> None:
        self.uris: set[str] = set()

    async def add(self, uri: str) -> bool:
        await checkpoint()
        self.uris.add(uri)
        await checkpoint()
        return True

    async def remove(self, uri: str) -> None:
        await checkpoint()
        self.uris.discard(uri)
        await checkpoint()


async def subscriptions_of_a_bridge(*, of_both: bool) -> Scenario:
    subscriber: Any = Subscriber()

    async def begin(_: Any, uri: str) -> str:
        assert await watcher.subscribe(uri)
        return key_of(uri)

    def end(key: str) -> Coroutine[Any, Any, None]:
        return watcher.unsubscribe_if_unused(key.removeprefix(key_of("")))

    unused: Any = None
    connection: Any = SimpleNamespace(up=True, client=None)
    clients = Clients(begin, end, lambda: [key_of(uri) for uri in subscriber.uris])
    watcher = ResourceWatcher(connection, clients.changes, unused, 5.0)
    watcher.subscriber = subscriber
    await clients.enter("a" if of_both else "b")
    results = yield clients.subscribe("a"), clients.visit("a")
    await clients.check(results)


class Owner:
    """A joined server, which may be reopened."""

    name = "a"

    def __init__(self) -> None:
        self.running: Any = None
        self.reopen()
        owners: Any = SimpleNamespace(first_result=lambda _context, uri, send: send(self, uri))
        self.joined = Subscriptions(owners, lambda *_: None)
        self.clients = Clients(self.joined.begin, self.joined.end, self.watched)

    def reopen(self) -> None:
        self.running = SimpleNamespace(changes=Changes())
        self.running.changes.on_subscribe = self._begin
        self.running.changes.on_unsubscribe = do_nothing

    async def _begin(self, _context: Any, uri: str) -> str:
        await checkpoint()
        return uri

    async def subscribe(self, context: Any, uri: str) -> tuple[Any, str]:
        run = self.running
        return run, await run.changes.subscribe(context, uri)

    def watched(self) -> list[str]:
        return [f"a {key}" for key in self.running.changes._subscribers.elements()]


async def subscriptions_of_joined_servers(*, of_both: bool) -> Scenario:
    owner = Owner()
    await owner.clients.enter("1" if of_both else "2")
    results = yield owner.clients.subscribe("1"), owner.clients.visit("1")
    await owner.clients.check(results)


async def renewed_subscriptions_of_joined_servers(*, of_both: bool) -> Scenario:
    owner: Any = Owner()
    await owner.clients.enter("1" if of_both else "2")
    await owner.clients.subscribe("1")

    async def renew() -> None:
        with anyio.CancelScope(shield=True):
            await owner.joined.renew(owner)

    owner.reopen()
    results = yield renew(), owner.clients.visit("1")
    await owner.clients.check(results)


async def subscriptions_to_postgres(*, of_both: bool) -> Scenario:
    class Watched(WatchedPostgresDatabase):
        async def _read_first_state(self, key: str, table: str | None) -> None:
            await checkpoint()

        async def run(self) -> None:
            with self.scope:
                running.add(self)
                await anyio.sleep_forever()
            running.discard(self)

    async def find_name(name: str) -> str:
        await checkpoint()
        return name

    def watched() -> list[str]:
        assert {one for one in running if not one.scope.cancel_called} <= {*watch._watched.values()}
        return [key for one in watch._watched.values() if not one.scope.cancel_called for key in one.keys]

    running: set[Any] = set()

    databases: Any = Databases([SimpleNamespace(name="shop", find_name=find_name)])  # type: ignore[type-var]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("servers.postgres.watch.watch.WatchedPostgresDatabase", Watched)
        async with anyio.create_task_group() as tasks:
            watch = PostgresWatch(databases, tasks, lambda _: None, lambda: None)
            clients = Clients(lambda _, uri: watch.begin(uri), watch.end, watched)
            await clients.enter(f"postgres:///shop/{'a' if of_both else 'b'}")
            results = yield clients.subscribe("postgres:///shop/a"), clients.visit("postgres:///shop/a")
            await clients.check(results)
            tasks.cancel_scope.cancel()


async def subscriptions_to_sqlite(*, of_both: bool) -> Scenario:
    class Watched(WatchedSqliteDatabase):
        async def run(self) -> None:
            with self.scope:
                running.add(self)
                await anyio.sleep_forever()
            running.discard(self)

    async def read_fingerprint(_: Any) -> None:
        await checkpoint()

    def watched() -> list[str]:
        assert {one for one in running if not one.scope.cancel_called} <= {*watch._watched.values()}
        return [key for one in watch._watched.values() if not one.scope.cancel_called for key in one.keys]

    running: set[Any] = set()

    databases: Any = Databases(
        SimpleNamespace(name=name, path=Path(f"{name}.db"))
        for name in ("shop", "other")  # type: ignore[type-var]
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("servers.sqlite.watch.watch.WatchedSqliteDatabase", Watched)
        patch.setattr("servers.sqlite.watch.watch.read_fingerprint", read_fingerprint)
        patch.setattr("servers.sqlite.watch.watch.watch_events", do_nothing)
        async with anyio.create_task_group() as tasks:
            watch = SqliteWatch(databases, tasks, lambda _: None, lambda: None)
            clients = Clients(lambda _, uri: watch.begin(uri), watch.end, watched)
            await clients.enter("sqlite:///shop/a" if of_both else "sqlite:///other/b")
            results = yield clients.subscribe("sqlite:///shop/a"), clients.visit("sqlite:///shop/a")
            await clients.check(results)
            tasks.cancel_scope.cancel()


async def resources_of_listen_streams() -> Scenario:
    opened: list[set[str]] = []
    errors: list[BaseException] = []

    class Client:
        connected = True

        @asynccontextmanager
        async def changes(self, uris: tuple[str, ...], **_: object) -> AsyncIterator[Any]:
            await checkpoint()
            stream = set(uris)
            opened.append(stream)
            try:
                yield _Silence()
            finally:
                opened.remove(stream)

    tasks, client = TaskSet(errors.append), Client()
    streams = ListenStreams(client, tasks, lambda _: None)  # type: ignore[arg-type]
    assert await streams.add("b")
    assert await streams.add("c")
    results = yield streams.add("a"), _then(streams.remove("b"), streams.add("d"))
    uris = {"c", *("a" * (results[0] is True)), *("d" * (results[1] is True))}
    for uri_ in {"a", "b", "c", "d"} - uris:
        assert uri_ not in streams._streams
    assert {uri_ for stream in opened for uri_ in stream} >= uris == streams._streams.keys()
    for uri_ in uris:
        await streams.remove(uri_)
    while opened:
        await asyncio.sleep(0)
    await stop(tasks, errors)


async def resources_taken_over_by_a_new_stream() -> Scenario:
    errors: list[BaseException] = []

    class Client:
        connected = True

        @asynccontextmanager
        async def changes(self, *_: object, **__: object) -> AsyncIterator[Any]:
            await checkpoint()
            yield _Silence()

    tasks, client = TaskSet(errors.append), Client()
    streams = ListenStreams(client, tasks, lambda _: None)  # type: ignore[arg-type]
    assert await streams.add("b")
    batch = listen_streams._Batch()
    batch.uris["a"] = None
    result, removed = yield streams._open_batch(batch), streams.remove("b")
    assert (removed, result) == (None, result)
    assert set(streams._streams) <= {"a"}
    assert {uri_ for stream in streams._open_streams() for uri_ in stream.uris} <= {"a"}
    await stop(tasks, errors)


async def _then(first: Coroutine[Any, Any, Any], second: Coroutine[Any, Any, Any]) -> Any:
    try:
        await first
    except BaseException:
        second.close()
        raise
    return await second


class _Silence:
    refused = ()

    def __aiter__(self) -> "_Silence":
        return self

    async def __anext__(self) -> Any:
        await anyio.sleep_forever()


SCENARIOS = [
    slot_of_a_host,
    bytes_of_large_pages,
    workers,
    connections_to_sqlite,
    connections_to_postgres,
    connections_of_a_closed_pool,
    sources_of_cursors,
    rows_of_a_query,
    prepared_statement_of_a_plan,
    frames_of_a_connection,
    processes_of_sessions,
    sessions_of_a_pool,
    reopened_session_of_a_client,
    rules_of_a_site,
    fetcher,
    tools_of_a_task_server,
    list_of_a_joined_server,
    partial(list_of_a_joined_server, is_listed=False),
    tools_of_a_guard,
    response_of_another_replica,
]
SUBSCRIPTIONS = [
    subscriptions_to_pages,
    subscriptions_of_a_bridge,
    subscriptions_of_joined_servers,
    renewed_subscriptions_of_joined_servers,
    subscriptions_to_postgres,
    subscriptions_to_sqlite,
]
PATIENT = [entries_for_replicas, resources_of_listen_streams, resources_taken_over_by_a_new_stream]
"""Those whose calls also wait for threads or timers."""


@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_every_order(scenario: Callable[[], Scenario]) -> None:
    await in_every_order(scenario)


@pytest.mark.parametrize("of_both", [False, True])
@pytest.mark.parametrize("scenario", SUBSCRIPTIONS)
async def test_subscriptions_in_every_order(scenario: Callable[..., Scenario], of_both: bool) -> None:
    await in_every_order(partial(scenario, of_both=of_both))


@pytest.mark.parametrize("scenario", PATIENT)
async def test_every_order_with_threads_and_timers(
    scenario: Callable[[], Scenario], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listen_streams, "GATHER_SECONDS", 0.0)
    await in_every_order(scenario, patience=0.005)


# In real directories


@pytest.fixture
def rooted(tmp_path: Path) -> RootedFiles:
    return RootedFiles(Roots([tmp_path], True))


async def test_own_writes_reach_every_reader(rooted: RootedFiles) -> None:
    root = rooted.roots.paths[0]
    everything, counter = Selection([str(root)], None), iter(range(10_000))

    async def reads() -> Scenario:
        watcher = Watcher(rooted, do_nothing)
        journal = Journal(rooted, watcher)
        cursor = (await journal.read(Page(10, 90_000, None), everything, 0)).cursor
        name = f"file {next(counter)}"
        (root / name).touch()
        journal.add_write(Place(0, (name,), str(root / name)))
        page = Page(10, 90_000, cursor)
        results = yield journal.read(page, everything, 0), journal.read(page, everything, 0)
        for read in (*results, await journal.read(page, everything, 0)):
            assert read is CANCELLED or [change.path for change in read.changes] == [str(root / name)]
        journal._unwatch()

    await in_every_order(reads, patience=0.005)


async def test_all_roots_are_watched_or_none(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
    rooted = RootedFiles(Roots([tmp_path / "a", tmp_path / "b"], True))

    async def reads() -> Scenario:
        watcher = Watcher(rooted, do_nothing)
        journal, everything = Journal(rooted, watcher), Selection([str(tmp_path)], None)
        page = Page(10, 90_000, None)
        results = yield journal.read(page, everything, 0), journal.read(page, everything, 0)
        is_read = any(result is not CANCELLED for result in results)
        assert watcher.health["watched"] in ((2,) if is_read else (0, 2))
        assert bool(journal._trees) == bool(watcher.health["watched"])
        await journal.read(page, everything, 0)
        assert [watched.target for watched in watcher._watched.values()] == journal._trees
        journal._unwatch()

    await in_every_order(reads, patience=0.005)


async def test_listed_parts_are_watched(rooted: RootedFiles) -> None:
    root = rooted.roots.paths[0]
    (root / "part").mkdir()
    part = narrow(rooted, [uri(str(root / "part"))])

    async def lists() -> Scenario:
        watcher = Watcher(rooted, do_nothing)
        listings = Listings(watcher)
        yield listings.watch(part, do_nothing), listings.watch(part, do_nothing)
        await listings.watch(part, do_nothing)
        assert watcher.health["watched"] == 1
        watcher.unwatch((part.roots.mark, 0))

    await in_every_order(lists, patience=0.005)


async def test_globs_are_watched_while_they_are_subscribed_to(rooted: RootedFiles) -> None:
    root = Place(0, (), str(rooted.roots.paths[0]))

    async def subscriptions() -> Scenario:
        watcher = Watcher(rooted, do_nothing)
        globs = GlobTrees(watcher, do_nothing)

        async def begin(_: Any, pattern: str) -> str:
            await globs.watch(pattern, root, f"./{pattern}", rooted)
            return pattern

        def watched() -> list[str]:
            assert watcher._watched.keys() == globs._trees.keys() == {*globs._globs.values()}
            return [key for _, keys in globs._trees.values() for key in keys._globs]

        clients = Clients(begin, globs.unwatch, watched)
        await clients.enter("x/*.c")
        results = yield clients.subscribe("*.a"), clients.visit("*.b")
        await clients.check(results)

    await in_every_order(subscriptions, patience=0.005)
