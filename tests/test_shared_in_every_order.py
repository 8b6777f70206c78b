"""What stays true in `shared` in whatever order two calls overlap, and if one of them is cancelled at any await."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint
from joserfc.jwk import Key

from shared.auth.authenticators import OAuthTokens
from shared.auth.claims import Grant
from shared.auth.dpop import make_proof, new_key
from shared.auth.issuers import REFETCH_SECONDS, Issuer
from shared.auth.metadata import IssuerMetadata
from shared.auth.possession import Possession
from shared.client.auth import AuthorizationCode, ClientInformation, MemoryTokens, OAuth, OAuthOptions
from shared.client.auth.discovery import Discovery
from shared.client.auth.stored_login import Login, StoredLogin, store_login
from shared.client.auth.tokens import Token
from shared.client.cache import ResponseCache
from shared.client.calls.cached import CachedRequests
from shared.client.connection.changes import PendingChanges
from shared.client.connection.link import Link
from shared.client.connection.subscription import Change, Subscription, subscribe
from shared.client.options import ClientOptions
from shared.concurrency import Signal, run_in_turns
from shared.contracts import Rate, SessionRecord, TaskLimits, TaskRecord
from shared.extensions.tasks import states
from shared.extensions.tasks.extension import FORM
from shared.extensions.tasks.hosted import HostedCall
from shared.extensions.tasks.runner import Tasks
from shared.protocol.http.rules import Denial, HttpRequest, Refusal
from shared.protocol.identity import Principal
from shared.protocol.session.handshake import NEW, State
from shared.protocol.wire.framing import ServerSentEvent
from shared.protocol.wire.jsonrpc import Response
from shared.server.dispatch.changes import Changes
from shared.server.dispatch.connection import Answers
from shared.server.dispatch.room import Room
from shared.server.dispatch.turns import Turns
from shared.steps import Steps
from shared.stores.redis.limiter import RedisLimiter
from shared.stores.redis.sessions import RedisSessions
from shared.telemetry.siblings import Siblings
from shared.testing import replicas
from shared.transports.http.limits.endpoint_limits import ClientLimits, SessionLimits
from shared.transports.http.limits.failed_logins import FailedLogins
from shared.transports.http.limits.rate_limits import ClientQuotas
from shared.transports.http.streamable.reply import Reply, Stage
from shared.transports.http.streamable.sessions import Sessions
from tests.interleaving import CANCELLED, Alone, Scenario, in_every_order
from tests.shared.auth.issuing import EC, RESOURCE, Clock, bear, request
from tests.shared.extensions.tasks.slow_store import SlowTasks
from tests.shared.server.peer import server

ISSUER = "https://issuer.example"
SERVER = "https://server.example/mcp"
METADATA = IssuerMetadata.model_validate({"issuer": ISSUER, "token_endpoint": f"{ISSUER}/token"})
HOUR = {"ttlMs": 3_600_000}
KEY = new_key()


class SlowWeb:
    """An issuer that answers after a while, and accepts each refresh token once."""

    def __init__(self, keys: Sequence[Key] = (EC,)) -> None:
        self.keys = keys
        self.requested: list[str] = []

    async def get_json(self, url: str, **_: Any) -> Any:
        self.requested.append(url.rpartition("/")[2])
        await checkpoint()
        keys = {"keys": [key.as_dict(private=False) for key in self.keys]}
        metadata = {"issuer": ISSUER, "jwks_uri": f"{ISSUER}/jwks"}
        return SimpleNamespace(status=200, document=keys if url.endswith("/jwks") else metadata, headers={})

    async def post_form(self, _url: str, fields: Any, **_: Any) -> Any:
        await checkpoint()
        count = len(self.requested)
        self.requested.append(fields["refresh_token"])
        is_accepted = fields["refresh_token"] == f"refresh-{count}"
        await checkpoint()
        if not is_accepted:
            return SimpleNamespace(status=400, document={"error": "invalid_grant"}, headers={})
        token = {"access_token": f"access-{count + 1}", "token_type": "Bearer", "expires_in": 3_600}
        document = {**token, "refresh_token": f"refresh-{count + 1}"}
        return SimpleNamespace(status=200, document=document, headers={})


async def turn_of_one_client() -> Scenario:
    turns, alone = Turns(1), Alone()

    async def work() -> None:
        async with turns.acquire("ada"), alone:
            pass

    results = yield work(), work()
    assert set(results) <= {None, CANCELLED}
    assert (turns.waiting, turns._working) == (0, {})


async def turn_of_another_client() -> Scenario:
    turns, alone, done = Turns(1), Alone(), anyio.Event()

    async def work(client: str, *until: anyio.Event) -> None:
        async with turns.acquire(client), alone:
            for event in until:
                await event.wait()

    async def finish() -> None:
        tasks.append(asyncio.create_task(work("eve")))
        try:
            await checkpoint()
        finally:
            done.set()

    tasks = [asyncio.create_task(work("ada", done))]
    await asyncio.sleep(0)
    yield work("bob"), finish()
    await asyncio.gather(*tasks)
    assert (turns.waiting, turns._working) == (0, {})


async def room_for_results() -> Scenario:
    room = Room(100)
    room.add("ada", 80)

    async def answer() -> None:
        await room.wait("ada")
        with room.use("ada", 80):
            await checkpoint()

    async def read() -> None:
        later.append(asyncio.create_task(answer()))
        try:
            await checkpoint()
        finally:
            room.remove("ada", 80)

    later: list[asyncio.Task[None]] = []
    results = yield answer(), read()
    assert set(results) <= {None, CANCELLED}
    await later[0]
    await asyncio.sleep(0)
    assert (room.used, room._waiting, room._by_client) == (0, {}, {})


async def steps_of_long_work() -> Scenario:
    def count() -> Steps[int]:
        yield
        yield
        return 2

    results = yield run_in_turns(count()), run_in_turns(count())
    assert set(results) <= {2, CANCELLED}
    assert await run_in_turns(count()) == 2


async def wake_of_a_signal() -> Scenario:
    signal, news = Signal(), list[str]()

    async def wait() -> None:
        while not news:
            await signal.wait()

    async def wake() -> None:
        try:
            await checkpoint()
        finally:
            news.append("now")
            signal.wake()

    waiting = asyncio.create_task(wait())
    yield wait(), wake()
    await waiting
    assert signal._waiting == ()


async def answer_to_a_question() -> Scenario:
    answers = Answers()
    answers.expect([1])

    async def ask() -> Any:
        try:
            return await answers.wait(1)
        finally:
            answers.forget([1])

    async def settle() -> None:
        try:
            await checkpoint()
            answers.settle(1, Response(1, {}))
        finally:
            answers.finish()

    asked, settled = yield ask(), settle()
    assert asked in (CANCELLED, Response(1, {})) or settled is CANCELLED
    assert answers._by_id is None


async def guessed_tokens() -> Scenario:
    alone = Alone()

    class Slow:
        async def authenticate(self, _request: HttpRequest) -> Denial:
            async with alone:
                return Denial("no", "Bearer")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("shared.transports.http.limits.failed_logins.RATE", Rate(0.001, 1))
        logins, guess = FailedLogins(Slow(), ClientQuotas(ClientLimits())), request(authorization="Bearer guess")
        results = yield logins.authenticate(guess), logins.authenticate(guess)
        assert {getattr(result, "status", result) for result in results} <= {401, 429, CANCELLED}
        assert logins._pending == {}


async def check_of_a_token() -> Scenario:
    checks = 0

    class Checker:
        async def check(self, *_: object) -> Grant:
            nonlocal checks
            checks += 1
            await checkpoint()
            return Grant(Principal("ada"), None)

    tokens = OAuthTokens(Checker(), Possession())
    results = yield bear(tokens, "a"), bear(tokens, "a")
    assert [result for result in results if result is not CANCELLED and result != Principal("ada")] == []
    assert checks == 1 or CANCELLED in results
    assert tokens.knows(request(authorization="Bearer a")) or set(results) == {CANCELLED}


async def first_keys_of_an_issuer() -> Scenario:
    web: Any = SlowWeb()
    issuer = Issuer(ISSUER, web)
    results = yield issuer.keys("ec", "ES256"), issuer.keys("ec", "ES256")
    assert {CANCELLED if result is CANCELLED else len(result) for result in results} <= {1, CANCELLED}
    assert len(await issuer.keys("ec", "ES256")) == 1
    assert web.requested.count("jwks") == 1


async def new_key_of_an_issuer() -> Scenario:
    web: Any = SlowWeb([])
    issuer = Issuer(ISSUER, web, Clock())
    assert await issuer.keys("ec", "ES256") == []
    web.keys, issuer._clock.now = [EC], issuer._clock.now + REFETCH_SECONDS  # type: ignore[attr-defined]
    results = yield issuer.keys("ec", "ES256"), issuer.keys("ec", "ES256")
    assert {CANCELLED if result is CANCELLED else len(result) for result in results} <= {1, CANCELLED}
    assert len(await issuer.keys("ec", "ES256")) == 1
    assert web.requested.count("jwks") == 2


async def refresh_of_a_token() -> Scenario:
    web: Any = SlowWeb()
    now = 1_000.0
    tokens, urls = MemoryTokens(), (SERVER, f"{SERVER}/inner")
    client = ClientInformation("me", method="none")
    login = Login(Discovery(METADATA, SERVER, None), client, (ISSUER, SERVER), None)
    first = StoredLogin(login, Token("access-0", expires=now, refresh="refresh-0"), frozenset())
    grant, options = AuthorizationCode(None), OAuthOptions(now=lambda: now)
    for url in urls:
        await store_login(tokens, url, first, grant, with_secrets=False)
    one, other = (OAuth(url, grant, tokens=tokens, options=options, web=web) for url in urls)
    results = yield one.headers("GET", SERVER), other.headers("GET", SERVER)
    assert all(result in (CANCELLED, {"authorization": "Bearer access-1"}) for result in results)
    assert web.requested in ([], ["refresh-0"])
    assert await one.headers("GET", SERVER) == {"authorization": "Bearer access-1"}
    assert await other.headers("GET", SERVER) == {"authorization": "Bearer access-1"}


async def login_after_a_refusal() -> Scenario:
    obtained = 0

    class Granting:
        client = redirect = None
        needs_person = False

        async def obtain(self, _request: Any) -> Token:
            nonlocal obtained
            obtained += 1
            await checkpoint()
            return Token(f"access-{obtained}")

    async def find(*_: object) -> Discovery:
        await checkpoint()
        return Discovery(METADATA, None, None)

    web: Any = SlowWeb()
    grant: Any = Granting()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("shared.client.auth.oauth.discover", find)
        client = OAuth(SERVER, grant, web=web)

        async def call() -> None:
            if not await client.headers("GET", SERVER):
                await client.answered("GET", SERVER, 401, {})

        results = yield call(), call()
        assert set(results) <= {None, CANCELLED}
        assert obtained == 1 or CANCELLED in results
        assert None not in results or await client.headers("GET", SERVER) == {
            "authorization": f"Bearer access-{obtained}"
        }


async def subscriptions() -> Scenario:
    changes, beginning, watched = Changes(), list[str](), set[str]()

    async def begin(_: Any, uri: str) -> str:
        beginning.append(uri)
        await checkpoint()
        beginning.remove(uri)
        watched.add(uri)
        return uri

    async def end(key: str) -> None:
        # As the servers do: nothing is awaited between the check and the end of the watch.
        await checkpoint()
        if not changes.has_subscribers(key):
            watched.discard(key)

    changes.on_subscribe, changes.on_unsubscribe = begin, end

    async def subscribe() -> None:
        key = await changes.subscribe(None, "a", "ada")
        held.append(key)

    async def visit() -> None:
        key = await changes.subscribe(None, "a", "bob")
        try:
            await checkpoint()
        finally:
            await changes.unsubscribe([key], "bob")

    held: list[str] = []
    yield subscribe(), visit()
    assert (watched, beginning) == ({*held}, [])
    await changes.unsubscribe(held, "ada")
    assert (watched, changes._total, changes._by_client, changes.subscribed_resources) == (set(), 0, {}, 0)


async def first_interest_in_resources() -> Scenario:
    changes, log = Changes(), list[str]()

    async def watch() -> None:
        await checkpoint()
        log.append("watched")

    async def list_resources() -> None:
        await changes.call_on_wanted()
        assert log == ["watched"]

    changes.on_wanted = watch
    results = yield list_resources(), list_resources()
    assert set(results) <= {None, CANCELLED}
    await list_resources()


async def changes_of_a_task() -> Scenario:
    store = SlowTasks(TaskLimits())
    await store.create(TaskRecord("t", "extension", None, "", 0.0, 0.0, 60.0))
    tasks = _tasks(store)
    results = yield (
        tasks.change("t", lambda task, now: states.ask(task, {"a": {}}, now)),
        tasks.change("t", lambda task, now: states.ask(task, {"b": {}}, now)),
    )
    task = await store.get("t")
    assert task is not None
    changed = [key for key, result in zip("ab", results, strict=True) if result is not CANCELLED]
    assert set(changed) <= set(task.questions)
    assert task.revision == len(task.questions)


async def end_of_a_followed_task() -> Scenario:
    store = SlowTasks(TaskLimits())
    await store.create(TaskRecord("t", "extension", None, "", 0.0, 0.0, 60.0))
    tasks = _tasks(store)

    async def follow() -> list[str]:
        return [task.status async for task in tasks.follow("t")]

    async def end() -> None:
        await tasks.change("t", states.cancel)
        await tasks.change("t", lambda task, now: states.end(task, "completed", {}, now))

    async def end_at_last() -> None:
        try:
            await end()
        finally:
            asyncio.get_running_loop().call_soon(lambda: ends.append(asyncio.create_task(end())))

    ends: list[asyncio.Task[None]] = []
    statuses, _ = yield follow(), end_at_last()
    await asyncio.gather(*ends)
    assert statuses is CANCELLED or statuses[-1] == "cancelled"
    assert store.inner._listeners == {}


async def task_of_a_cancelled_call() -> Scenario:
    def finish(call: Any, _result: Any) -> None:
        assert not call.is_over
        call.is_over = True

    async def cancel() -> None:
        await checkpoint()
        call.is_over = True

    async def detach() -> None:
        with anyio.CancelScope(shield=True):  # as in the task of its own in which it runs
            await hosted._create_task()

    store = SlowTasks(TaskLimits())
    tasks = _tasks(store)
    peer = SimpleNamespace(principal=None)
    call = SimpleNamespace(is_over=False, peer=peer, scopes=frozenset(), params=None, release=None)
    calls = SimpleNamespace(detach=lambda *_: None, cancel=lambda _: None)
    link = SimpleNamespace(session=SimpleNamespace(finish=finish), calls=calls)
    context: Any = SimpleNamespace(call=call, link=link, owner="")
    hosted = HostedCall(tasks, context, FORM, 60.0)
    yield detach(), cancel()
    await tasks.wait_for_writes()
    assert (await store.get(hosted.id) is not None) == hosted.is_detached
    assert bool(tasks.local_tasks) == hosted.is_detached
    hosted.give_up()
    assert store.inner._listeners == {}


async def shared_request() -> Scenario:
    sent = 0

    async def send(*_: Any, **__: Any) -> dict[str, Any]:
        nonlocal sent
        sent += 1
        number = sent
        await checkpoint()
        return {"tools": [number], **HOUR}

    ask = CachedRequests(send, ResponseCache())
    results = yield ask("tools/list"), ask("tools/list")
    assert sent == 1 or CANCELLED in results
    assert all(result is CANCELLED or result["tools"] == [sent] for result in results)
    assert (ask._shared_requests, ask._cache._pending) == ({}, set())


async def change_during_a_shared_request() -> Scenario:
    version = 1

    async def send(*_: Any, **__: Any) -> dict[str, Any]:
        sent = version
        await checkpoint()
        return {"tools": [sent], **HOUR}

    async def change() -> None:
        nonlocal version
        await checkpoint()
        version = 2
        ask.on_change(Change("tools"))
        assert (await ask("tools/list"))["tools"] == [2]

    ask = CachedRequests(send, ResponseCache())
    _, changed = yield ask("tools/list"), change()
    assert changed in (None, CANCELLED)
    assert (await ask("tools/list"))["tools"] == [version]


async def shared_request_after_an_older_one() -> Scenario:
    sent, answered = 0, anyio.Event()

    async def send(*_: Any, **__: Any) -> dict[str, Any]:
        nonlocal sent
        sent += 1
        await (answered.wait() if sent == 1 else checkpoint())
        return {"tools": [], **HOUR}

    async def answer_the_older_one() -> None:
        answered.set()
        await older
        await ask("tools/list")

    ask = CachedRequests(send, ResponseCache())
    older = asyncio.create_task(ask("tools/list"))
    await asyncio.sleep(0)
    ask.on_change(Change("tools"))
    results = yield ask("tools/list"), answer_the_older_one()
    assert sent == 2 or CANCELLED in results
    assert ask._shared_requests == {}


async def subscriptions_of_a_client() -> Scenario:
    server_uris: set[str] = set()

    class Connected:
        def __init__(self) -> None:
            self.gone, self.closed = anyio.Event(), anyio.Event()
            self.session = SimpleNamespace(stateless=False)
            self.subscriptions: list[Subscription] = []

        async def call(self, method: str, params: Any, **_: object) -> None:
            (server_uris.add if method == "resources/subscribe" else server_uris.discard)(params["uri"])
            await checkpoint()

    async def listen(*uris: str) -> None:
        async with subscribe(connection, Subscription(uris, lambda _: None)):
            await checkpoint()
            assert {*uris} <= server_uris

    connection: Any = Connected()
    results = yield listen("a", "b"), listen("b", "a")
    assert set(results) <= {None, CANCELLED}
    assert (server_uris, connection.subscriptions) == (set(), [])


async def lost_connection_of_a_client() -> Scenario:
    class Lost:
        def __init__(self, *_: object) -> None:
            self.gone, self.closed = anyio.Event(), anyio.Event()
            self.session = SimpleNamespace(stateless=False)

        @asynccontextmanager
        async def run(self) -> AsyncIterator[None]:
            yield
            self.closed.set()

        async def drain(self) -> None:
            await checkpoint()

        def abort(self, _reason: str) -> None:
            self.gone.set()

    @asynccontextmanager
    async def start() -> AsyncIterator[Any]:
        nonlocal started
        started += 1
        await checkpoint()
        yield None

    async def open_session(*_: object) -> None:
        await checkpoint()

    async def monitor(connection: Lost, _seconds: float) -> None:
        await connection.gone.wait()

    started = 0
    unused: Any = None
    connect: Any = Lost
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("shared.client.connection.link.open_session", open_session)
        patch.setattr("shared.client.connection.link._monitor", monitor)
        link = Link(unused, ClientOptions(), connect, start, lambda: None)
        async with link.run():
            link.connection.abort("")
            results = yield link.current(None), link.current(None)
            current = await link.current(None)
            assert {CANCELLED, current} >= {*results}
            assert (started, current.gone.is_set()) == (1, False)


async def changes_for_a_reader() -> Scenario:
    pending = PendingChanges()

    async def put() -> None:
        try:
            for uri in "ab":
                await checkpoint()
                pending.put(Change("resource", uri))
        finally:
            pending.end()

    async def read() -> None:
        while (change := await pending.take()) is not None:
            read_uris.append(change.uri)

    read_uris: list[str | None] = []
    _, result = yield read(), put()
    await read()
    assert result is CANCELLED or read_uris == ["a", "b"]


def _tasks(store: SlowTasks) -> Tasks:
    run: Any = SimpleNamespace(server=SimpleNamespace(task_limits=TaskLimits()))
    return Tasks(run, store)


async def one_proof_twice() -> Scenario:
    claimed: set[str] = set()

    async def claim(name: str, _seconds: float) -> bool:
        await checkpoint()
        is_new = name not in claimed
        claimed.add(name)
        await checkpoint()
        return is_new

    class Checker:
        async def check(self, *_: object) -> Grant:
            await checkpoint()
            return Grant(Principal("ada"), KEY.thumbprint())

    clock = Clock()
    proof = make_proof(KEY, "POST", RESOURCE, clock.now, token="a")
    incoming = replace(request(authorization="DPoP a", dpop=proof), claim=claim)
    here, there = (OAuthTokens(Checker(), Possession(), clock=clock) for _ in range(2))
    results = yield here.authenticate(incoming), there.authenticate(incoming)
    last = await here.authenticate(incoming)
    assert [*results, last].count(Principal("ada")) <= 1
    assert isinstance(last, Denial) or CANCELLED in results


async def reservation_of_a_limiter() -> Scenario:
    class Link:
        disconnect_reason = None
        granted = 0.0

        async def ask(self, _name: str, _key: str, _us: float, burst: float, cost: float, reserved: float) -> Any:
            await checkpoint()
            taken = min(max(cost, reserved), burst - self.granted)
            if taken < cost:
                return 0, 1_000_000
            self.granted += taken
            await checkpoint()
            return taken, 0

    link: Any = Link()
    limiter = RedisLimiter(link)
    rate = Rate(1.0, 130.0)
    waits = yield limiter.take("ada", rate), limiter.take("ada", rate)
    assert set(waits) <= {0.0, CANCELLED}
    if CANCELLED not in waits:
        assert limiter._remaining["ada"] == link.granted - 2
    limiter._reservation_expiry.close()


async def figures_of_siblings() -> Scenario:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        siblings = Siblings(1, ours)

        async def send(data: bytes) -> None:
            await checkpoint()
            answer = {"all": json.loads(data)["ask"], "figures": [], "processes": {}, "restarts": 7}
            asyncio.get_running_loop().call_soon(
                lambda: answers.append(asyncio.create_task(siblings._handle(answer)))
            )

        answers: list[asyncio.Task[None]] = []
        siblings._send = send  # type: ignore[method-assign]
        results = yield siblings.request_totals(), siblings.request_totals()
        assert [result.restarts for result in results if result is not CANCELLED] == [7] * (
            2 - results.count(CANCELLED)
        )
        await asyncio.gather(*answers)
        assert siblings._requests == {}


async def update_of_a_session_that_ends() -> Scenario:
    class Link:
        async def ask(self, name: str, *_: object, **__: object) -> Any:
            await checkpoint()
            return [b"2", None] if name == "update" else None

    async def end() -> None:
        await checkpoint()
        sessions.on_end("s")

    link: Any = Link()
    sessions = RedisSessions(link, lambda _: None)
    await sessions.create(SessionRecord("s", None, "ada", 60.0, NEW))
    _, ended = yield sessions.update("s", NEW, replace(NEW, state=State.OPEN)), end()
    assert ended is CANCELLED or sessions._cached == {}


class SlowSessions:
    """A store of sessions that answers after a while."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def enter(self, *arguments: Any) -> Any:
        await checkpoint()
        entered = await self._store.enter(*arguments)
        await checkpoint()
        return entered


async def end_of_a_session_that_is_entered() -> Scenario:
    async def end() -> None:
        await checkpoint()
        here.end(session)
        await checkpoint()

    async with replicas(server(), 2) as (one, other), anyio.create_task_group() as tasks:
        here, there = (Sessions(run, tasks, SessionLimits()) for run in (one, other))
        there._store = SlowSessions(there._store)  # type: ignore[assignment]
        session = here.open(None, "ada")
        assert not isinstance(session, Refusal)
        await here.confirm(session)
        _, ended = yield there.enter(session.id, None), end()
        await asyncio.sleep(0)
        assert ended is CANCELLED or (len(here), len(there)) == (0, 0)
        assert (there._entering, there._ended_while_entering) == ({}, set())
        here.end_all(orderly=False)
        there.end_all(orderly=False)


async def events_and_comments_of_a_stream() -> Scenario:
    alone, bodies = Alone(), list[bytes]()

    async def send(event: Any) -> None:
        async with alone:
            bodies.append(event.get("body", b"start"))

    reply = Reply(send)
    await reply.events([])
    yield reply.events([ServerSentEvent(data=b"{}")], last=True), reply.comment()
    await reply.end()
    assert reply.stage is Stage.ENDED
    assert bodies.count(b"start") == 1


SCENARIOS = [
    turn_of_one_client,
    turn_of_another_client,
    room_for_results,
    steps_of_long_work,
    wake_of_a_signal,
    answer_to_a_question,
    guessed_tokens,
    check_of_a_token,
    first_keys_of_an_issuer,
    new_key_of_an_issuer,
    refresh_of_a_token,
    login_after_a_refusal,
    subscriptions,
    first_interest_in_resources,
    changes_of_a_task,
    end_of_a_followed_task,
    task_of_a_cancelled_call,
    shared_request,
    change_during_a_shared_request,
    shared_request_after_an_older_one,
    subscriptions_of_a_client,
    lost_connection_of_a_client,
    changes_for_a_reader,
    one_proof_twice,
    reservation_of_a_limiter,
    figures_of_siblings,
    update_of_a_session_that_ends,
    end_of_a_session_that_is_entered,
    events_and_comments_of_a_stream,
]


@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_every_order(scenario: Callable[[], Scenario]) -> None:
    await in_every_order(scenario)
