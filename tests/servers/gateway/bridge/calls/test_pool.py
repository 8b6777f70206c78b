"""`pool.py`: sessions for the calls of stateless clients, one call at a time."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from servers.gateway.bridge import Upstream
from servers.gateway.bridge.calls.pending_input import PendingCalls
from servers.gateway.bridge.calls.pool import SessionPool
from servers.gateway.bridge.calls.pooled_session import ROOTS_SECONDS
from servers.gateway.bridge.forwarding import GONE
from shared import Context, Run
from shared.client.client import Client
from shared.client.options import ClientOptions
from shared.errors import PeerError
from shared.protocol.identity import Principal
from shared.server.extension import Extension
from tests.clock import forward
from tests.quiet import quiet
from tests.servers.gateway.bridge.asking import (
    EVERYTHING,
    FORMS,
    Asking,
    asked,
    begun,
    ignore,
    named,
    placed,
    round_of,
    text,
)
from tests.shared.server.peer import Json, talking
from tests.wire import STATELESS

ADA, EVE = Principal("ada"), Principal("eve")
FORM: Json = {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}


@asynccontextmanager
async def _pooled(**limits: Any) -> AsyncIterator[tuple[Asking, Run[Any], SessionPool]]:
    asking, pools = Asking(), list[SessionPool]()

    def make(crew: Any) -> SessionPool:
        pools.append(SessionPool(asking.upstream(), crew, ignore, **limits))
        return pools[0]

    async with asking.app.open() as asking.running, placed(make) as running:
        yield asking, running, pools[0]


def _talking(running: Run[Any], who: Principal | None = None, capabilities: Json = FORMS) -> Any:
    return talking(running, STATELESS, capabilities, principal=who)


async def test_successive_calls_share_a_session() -> None:
    async with _pooled() as (asking, running, pool), _talking(running) as peer:
        assert await peer.text("keep", word="first") == "nothing"
        assert await peer.text("keep") == "first"
        assert (asking.opened, len(pool)) == (1, 1)


async def test_concurrent_calls_get_separate_sessions() -> None:
    async with _pooled() as (asking, running, _), _talking(running) as peer:
        first, second = await begun(peer, "greet"), await begun(peer, "greet")
        for id_ in (first, second):
            assert asked(await peer.answer(id_)) == {"q1": "elicitation/create"}
        assert asking.opened == 2


async def test_clients_never_share_a_session() -> None:
    async with _pooled() as (_, running, _session_pool):
        for who in (ADA, EVE):
            async with _talking(running, who) as peer:
                assert await peer.text("keep", word=who.key) == "nothing"
        async with _talking(running, ADA) as peer:
            assert await peer.text("keep") == "ada"


async def test_other_capabilities_get_another_session() -> None:
    async with _pooled() as (asking, running, _), _talking(running) as peer:
        assert await peer.text("keep", word="forms") == "nothing"
        peer.capabilities = EVERYTHING
        assert await peer.text("keep") == "nothing"
        assert await peer.text("who") == "wire: elicitation, roots, sampling"
        assert asking.opened == 2


async def test_notifications_reach_only_the_client_of_the_call() -> None:
    async with _pooled() as (asking, running, _), _talking(running, ADA) as ada, _talking(running, EVE) as eve:
        ids = []
        for peer, word in ((ada, "ada"), (eve, "eve")):
            asking.heard = anyio.Event()
            level = {"io.modelcontextprotocol/logLevel": "info", "progressToken": word}
            params = {"name": "hear", "arguments": {"word": word}}
            ids.append((peer, word, await peer.begin("tools/call", params, **level)))
            await asking.heard.wait()
        asking.going_on.set()
        for peer, word, id_ in ids:
            assert text(await peer.answer(id_)) == word
            said = [one["params"].get("message") or one["params"]["data"] for one in peer.others]
            assert said == [word] * 4


async def test_a_log_level_is_set_when_the_session_has_another() -> None:
    async with _pooled() as (_, running, _session_pool), _talking(running) as peer:
        for level, told in (("error", 0), ("info", 1), (None, 0)):
            meta = {} if level is None else {"io.modelcontextprotocol/logLevel": level}
            await peer.request("tools/call", {"name": "count", "arguments": {"to": 1}}, **meta)
            assert [one["params"]["data"] for one in peer.others] == ["counted"] * told
            peer.others.clear()


async def test_a_session_whose_call_was_cancelled_is_closed() -> None:
    async with _pooled() as (asking, running, pool), _talking(running) as peer:
        id_ = await begun(peer, "wait")
        await asking.started.wait()
        await peer.cancel(id_)
        await asking.cancelled.wait()
        assert await peer.text("add", a=1, b=2) == "3"
        assert (asking.opened, len(pool)) == (2, 1)


async def test_an_idle_session_is_closed_after_its_timeout() -> None:
    async with _pooled(idle_seconds=0.01) as (asking, running, pool), _talking(running) as peer:
        await peer.text("add", a=1, b=2)
        await asking.left.wait()
        assert len(pool) == 0


async def test_a_call_waits_for_a_free_session() -> None:
    async with _pooled(max_sessions=1) as (asking, running, _), _talking(running) as peer:
        first = await round_of(peer, "greet")
        waiting = await peer.start("add", a=1, b=2)
        second = await round_of(peer, "greet", first, q1=named("Ada"))
        assert text(await round_of(peer, "greet", second, q2=named("Lovelace"))) == "Ada Lovelace"
        assert text(await peer.answer(waiting)) == "3"
        assert asking.opened == 1


async def test_a_session_parked_for_an_absent_client_is_freed_for_others() -> None:
    pending_calls = PendingCalls(away_seconds=0.01)
    async with (
        _pooled(max_sessions=1, pending_calls=pending_calls) as (asking, running, pool),
        _talking(running) as peer,
    ):
        first = await round_of(peer, "greet")
        assert await peer.text("add", a=1, b=2) == "3"
        assert (await round_of(peer, "greet", first, q1=named("Ada")))["error"]["message"] == GONE
        assert (asking.opened, len(pool), len(pending_calls)) == (2, 1, 0)


async def test_an_idle_session_is_replaced_for_another_client() -> None:
    async with _pooled(max_sessions=1) as (asking, running, pool), _talking(running, ADA) as ada:
        await ada.text("add", a=1, b=2)
        async with _talking(running, EVE) as eve:
            assert await eve.text("add", a=1, b=2) == "3"
        assert (asking.opened, asking.ended, len(pool)) == (2, 1, 1)


async def test_cancelling_a_waiting_call_leaves_the_sessions_unchanged() -> None:
    async with _pooled(max_sessions=1) as (asking, running, pool), _talking(running, ADA) as ada:
        first = await round_of(ada, "greet")
        async with _talking(running, EVE) as eve:
            await eve.cancel(await eve.start("add", a=1, b=2))
        assert asked(await round_of(ada, "greet", first, q1=named("Ada"))) == {"q2": "elicitation/create"}
        assert (asking.opened, len(pool)) == (1, 1)


async def test_roots_requested_at_startup_are_asked_during_the_first_capable_call() -> None:
    async with _pooled() as (asking, running, _), _talking(running, capabilities=EVERYTHING) as peer:
        asking.asks_for_roots = True
        await peer.request("tools/list")
        answer = await round_of(peer, "wait_for_roots")
        assert asked(answer) == {"q1": "roots/list"}
        roots = {"roots": [{"uri": "file:///work"}]}
        assert text(await round_of(peer, "wait_for_roots", answer, q1=roots)) == "file:///work"


async def test_an_unreachable_server_is_named() -> None:
    asking = Asking()
    async with placed(lambda crew: SessionPool(asking.away(), crew, ignore)) as running, _talking(running) as peer:
        error = (await peer.request("tools/list"))["error"]
        assert error == {"code": -32603, "message": "the server asking is not available: nobody is there"}


async def test_one_client_can_not_occupy_all_sessions() -> None:
    async with (
        _pooled(max_sessions=2) as (_, running, _session_pool),
        _talking(running, ADA) as ada,
        _talking(running, EVE) as eve,
    ):
        first = await round_of(ada, "greet")
        waiting = await begun(ada, "greet")
        assert await eve.text("add", a=3, b=4) == "7"
        second = await round_of(ada, "greet", first, q1=named("Ada"))
        assert text(await round_of(ada, "greet", second, q2=named("Lovelace"))) == "Ada Lovelace"
        assert asked(await ada.answer(waiting)) == {"q1": "elicitation/create"}


async def test_questions_during_a_list_are_refused() -> None:
    asking, refusals = Asking(), list[int]()

    async def list_tools(_running: Any, context: Context[Any], _params: Any) -> Json:
        for question in (("roots/list", {}), ("elicitation/create", FORM)):
            with pytest.raises(PeerError) as refused:
                await context.forward_questions({"question": question}, None)
            refusals.append(refused.value.code)
        return {"tools": []}

    lists = Extension[Any]("lists", around=lambda row, handler: list_tools if row.name == "tools/list" else handler)
    async with (
        asking.app.open(extensions=[lists]) as asking.running,
        placed(lambda crew: SessionPool(asking.upstream(), crew, ignore)) as running,
        _talking(running, capabilities=EVERYTHING) as peer,
    ):
        id_ = await peer.begin("tools/list")
        await quiet()
        forward(ROOTS_SECONDS)  # so long a call that can be asked is waited for
        assert (await peer.answer(id_))["result"]["tools"] == []
        assert refusals == [-32601, -32601]


async def test_a_server_that_opens_no_session_in_time_is_named_in_the_error() -> None:
    @asynccontextmanager
    async def connect(_options: ClientOptions) -> AsyncIterator[Client]:
        await anyio.sleep_forever()
        yield

    upstream = Upstream("slow", connect, opening_seconds=0.01)
    async with placed(lambda crew: SessionPool(upstream, crew, ignore)) as running, _talking(running) as peer:
        error = (await peer.request("tools/list"))["error"]
        assert error["message"] == "the server slow is not available: it did not answer in time"


async def test_a_session_that_opened_too_late_serves_the_next_call() -> None:
    asking, go, pools = Asking(), anyio.Event(), list[SessionPool]()

    @asynccontextmanager
    async def connect(options: ClientOptions) -> AsyncIterator[Client]:
        await go.wait()
        async with asking.session(options) as client:
            yield client

    def make(crew: Any) -> SessionPool:
        pools.append(SessionPool(Upstream("slow", connect, opening_seconds=0.01), crew, ignore))
        return pools[0]

    async with asking.app.open() as asking.running, placed(make) as running, _talking(running) as peer:
        assert "did not answer in time" in (await peer.call("keep"))["error"]["message"]
        go.set()
        while not list(pools[0]._idle):
            await anyio.lowlevel.checkpoint()
        assert await peer.text("keep", word="first") == "nothing"
        assert (asking.opened, len(pools[0])) == (1, 1)
