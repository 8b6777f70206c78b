"""`shared_session.py`: one session on a server for all clients of a bridge."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from servers.gateway.bridge import bridge
from shared import Run
from tests.servers.gateway.apps import HOST, PAGE, linked, notes, shown, title
from tests.servers.gateway.bridge.asking import EVERYTHING, FORMS, Asking, begun, named, round_of, text
from tests.servers.gateway.bridge.upstreams import OLD, Behind, over_http
from tests.shared.server.peer import ERAS, NEWEST_HANDSHAKE, PATIENCE, Json, Peer, talking
from tests.wire import STATELESS

BOTH_ERAS = pytest.mark.parametrize("version", ERAS)


@asynccontextmanager
async def _shared() -> AsyncIterator[tuple[Asking, Run[Any]]]:
    asking = Asking()
    with anyio.fail_after(3 * PATIENCE):
        async with (
            asking.app.open() as asking.running,
            bridge(asking.upstream(shares_session=True)).open() as running,
        ):
            yield asking, running


async def _greeted(peer: Peer, first: str, last: str, *, id: Any = None) -> str:
    """The result of the tool that asks for two names; its call may already have begun."""
    id_ = await begun(peer, "greet") if id is None else id
    if peer.version == STATELESS:
        one = await peer.answer(id_)
        two = await round_of(peer, "greet", one, q1=named(first))
        return text(await round_of(peer, "greet", two, q2=named(last)))
    for name in (first, last):
        await peer.reply((await peer.other("elicitation/create"))["id"], named(name))
    return text(await peer.answer(id_))


async def _hearing(peer: Peer, asking: Asking, word: str) -> Any:
    """The id of a call that has sent that word once and waits."""
    asking.heard = anyio.Event()
    meta = {"progressToken": word}
    if peer.version == STATELESS:
        meta["io.modelcontextprotocol/logLevel"] = "info"
    id_ = await peer.begin("tools/call", {"name": "hear", "arguments": {"word": word}}, **meta)
    await asking.heard.wait()
    return id_


@asynccontextmanager
async def _waiting(peer: Peer, asking: Asking) -> AsyncIterator[None]:
    """Keeps a call of the client in progress during the block."""
    id_ = await begun(peer, "wait")
    await asking.started.wait()
    yield
    await peer.cancel(id_)
    await asking.cancelled.wait()


async def _has_heard(peer: Peer) -> list[Json]:
    """All notifications that the client has received."""
    await peer.request("tools/list")
    return peer.others


def _told(peer: Peer, method: str) -> list[Json]:
    return [one["params"] for one in peer.others if one["method"] == method]


@BOTH_ERAS
async def test_all_clients_share_one_session(version: str) -> None:
    async with _shared() as (asking, running), talking(running, version) as ada, talking(running, version) as eve:
        assert await ada.text("keep", word="ada") == "nothing"
        assert await eve.text("keep") == "ada"
        assert asking.opened == 1


@BOTH_ERAS
async def test_a_question_reaches_the_only_calling_client(version: str) -> None:
    async with (
        _shared() as (_, running),
        talking(running, version, FORMS) as ada,
        talking(running, version, FORMS) as eve,
    ):
        assert await _greeted(ada, "Ada", "Lovelace") == "Ada Lovelace"
        assert await _greeted(eve, "Eve", "Adams") == "Eve Adams"
        assert "roots/list" in await ada.text("tell_refusal")  # which it has not declared
        assert (await _has_heard(ada), await _has_heard(eve)) == ([], [])


@BOTH_ERAS
async def test_a_question_during_calls_of_several_clients_is_refused(version: str) -> None:
    async with (
        _shared() as (asking, running),
        talking(running, version, EVERYTHING) as ada,
        talking(running, version, EVERYTHING) as eve,
        _waiting(eve, asking),
    ):
        # Several calls of one client are told apart by nobody else.
        assert await _greeted(eve, "Eve", "Adams") == "Eve Adams"
        assert await ada.text("tell_refusal") == "it is unknown which client this question is for"
        assert (await _has_heard(ada), await _has_heard(eve)) == ([], [])


async def test_a_question_outside_of_calls_is_refused() -> None:
    asking = Asking()
    asking.asks_for_roots = True
    async with asking.app.open() as asking.running, bridge(asking.upstream(shares_session=True)).open():
        with anyio.fail_after(PATIENCE):
            await asking.roots_told.wait()
        assert asking.roots_are == {"error": "no call is in progress, so there is no client to ask"}


@BOTH_ERAS
async def test_progress_and_logs_reach_the_only_calling_client(version: str) -> None:
    async with _shared() as (asking, running), talking(running, version) as ada:
        id_ = await _hearing(ada, asking, "ada")
        asking.going_on.set()
        await ada.answer(id_)
        assert [one["progress"] for one in _told(ada, "notifications/progress")] == [1, 2]
        assert [one["data"] for one in _told(ada, "notifications/message")] == ["ada", "ada"]


@BOTH_ERAS
async def test_several_calling_clients_get_their_own_progress_and_no_logs(version: str) -> None:
    async with (
        _shared() as (asking, running),
        talking(running, version) as ada,
        talking(running, version) as eve,
        _waiting(ada, asking),
    ):
        id_ = await _hearing(eve, asking, "eve")
        asking.going_on.set()
        assert text(await eve.answer(id_)) == "eve"
        assert [one["progressToken"] for one in _told(eve, "notifications/progress")] == ["eve", "eve"]
        assert _told(eve, "notifications/message") == []
        assert await _has_heard(ada) == []


async def test_the_end_of_a_visit_is_sent_to_the_client_that_was_asked() -> None:
    async with (
        _shared() as (asking, running),
        talking(running, NEWEST_HANDSHAKE, EVERYTHING) as ada,
        talking(running, NEWEST_HANDSHAKE, EVERYTHING) as eve,
    ):
        id_ = await begun(ada, "visit")
        question = await ada.other("elicitation/create")
        visit = {"elicitationId": question["params"]["elicitationId"]}
        await ada.reply(question["id"], {"action": "accept"})
        assert text(await ada.answer(id_)) == "accept"
        asking.links[0].session.notify_session("notifications/elicitation/complete", visit)
        asking.links[0].send_soon()
        assert (await ada.other("notifications/elicitation/complete"))["params"] == visit
        assert await _has_heard(eve) == []


async def test_log_levels_apply_per_request_and_per_session() -> None:
    async with (
        _shared() as (_, running),
        talking(running, NEWEST_HANDSHAKE) as ada,
        talking(running, STATELESS) as eve,
    ):
        await ada.request("logging/setLevel", {"level": "error"})
        assert (await ada.text("count", to=1), ada.others) == ("done", [])
        meta = {"io.modelcontextprotocol/logLevel": "info"}
        await eve.request("tools/call", {"name": "count", "arguments": {"to": 1}}, **meta)
        assert [one["data"] for one in _told(eve, "notifications/message")] == ["counted"]
        assert (await ada.text("count", to=1), ada.others) == ("done", [])


async def test_a_shared_session_offers_no_app_pages() -> None:
    # What the server would say of them there it would say to all.
    behind = Behind(notes(), OLD)
    async with behind.serving(shared=True) as way, talking(bridge(way), NEWEST_HANDSHAKE, HOST) as peer:
        assert await linked(peer) == {}
        assert await shown(peer) is None
        assert await title(peer, PAGE) == "a note"


@pytest.mark.slow
@BOTH_ERAS
async def test_each_client_on_a_stream_gets_only_its_own_questions(version: str) -> None:
    asking = Asking()
    with anyio.fail_after(3 * PATIENCE):
        async with (
            over_http(OLD, asking.app, shares_session=True) as upstream,
            bridge(upstream).open() as running,
            talking(running, version, FORMS) as ada,
            talking(running, version, FORMS) as eve,
        ):
            ids = [await begun(ada, "greet"), await begun(eve, "greet")]
            assert await _greeted(ada, "Ada", "Lovelace", id=ids[0]) == "Ada Lovelace"
            assert await _greeted(eve, "Eve", "Adams", id=ids[1]) == "Eve Adams"
