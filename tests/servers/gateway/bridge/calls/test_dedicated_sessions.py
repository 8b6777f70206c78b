"""A session on the server for each client that has one with the bridge."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial

import anyio
import pytest

from servers.gateway.bridge import Upstream, bridge
from shared import Question
from shared.client.client import Client
from shared.client.options import ClientOptions
from shared.concurrency import background
from shared.errors import PeerError
from shared.protocol.types.resources import Resource
from shared.server.dispatch.connection import serve
from shared.server.dispatch.context import Context
from tests.servers.gateway.bridge.asking import Asking
from tests.servers.gateway.bridge.recording import Recording
from tests.servers.gateway.bridge.telling import Telling, until
from tests.servers.gateway.bridge.upstreams import Behind, bridged, opened
from tests.servers.gateway.joined.members import vendors
from tests.shared.client.connection.test_link import Played, good, unanswered
from tests.shared.client.small import Small, text_of
from tests.shared.server.peer import NEWEST_HANDSHAKE, PATIENCE, STATELESS, Json, talking

FORMS: Json = {"elicitation": {"form": {}}, "roots": {"listChanged": True}}


async def test_each_client_gets_a_session_after_its_handshake() -> None:
    behind = Behind(Small().app)
    async with opened(behind) as running, talking(running), talking(running) as peer:
        await until(lambda: len(behind.lines) == 3)
        await peer.call("add", a=1, b=2)
        assert len(behind.lines) == 3


async def test_a_new_session_of_a_client_replaces_its_longest_idle_process() -> None:
    behind = Behind(Small().app)
    async with opened(behind, processes=4) as running, AsyncExitStack() as peers:
        many = [await peers.enter_async_context(talking(running)) for _ in range(3)]
        for peer in (*many, many[0], *many):
            assert "result" in await peer.call("add", a=1, b=2)
            assert len(behind.running.changes._listeners) <= 3  # those and that of the bridge itself


async def test_the_process_used_most_recently_is_not_replaced() -> None:
    behind = Behind(Small().app)
    async with opened(behind, processes=4) as running, AsyncExitStack() as peers:
        first, second = [await peers.enter_async_context(talking(running)) for _ in range(2)]
        for peer in (first, second, first, await peers.enter_async_context(talking(running))):
            assert "result" in await peer.call("add", a=1, b=2)
        lines = len(behind.lines)
        assert "result" in await first.call("add", a=1, b=2)
        assert len(behind.lines) == lines


async def test_a_client_without_a_process_replaces_the_longest_idle_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    behind = Behind(Small().app)
    async with opened(behind, processes=2) as running, AsyncExitStack() as peers:
        for address in ("ada", "bob", "eve"):
            monkeypatch.setattr("shared.testing.serve", partial(serve, client=address))
            peer = await peers.enter_async_context(talking(running))
            assert "result" in await peer.call("add", a=1, b=2)
            assert len(behind.running.changes._listeners) <= 3  # those and that of the bridge itself


async def test_processes_in_use_are_never_replaced() -> None:
    async with opened(Behind(Small().app), processes=4) as running, AsyncExitStack() as peers:
        for _ in range(2):
            peer = await peers.enter_async_context(talking(running, NEWEST_HANDSHAKE, FORMS))
            await peer.start("greet")
            await peer.other("elicitation/create")
        third = await peers.enter_async_context(talking(running, NEWEST_HANDSHAKE, FORMS))
        error = (await third.call("add", a=1, b=2))["error"]
        assert "this client has the maximum number of processes for one client" in error["message"]


async def test_a_session_ends_when_its_client_leaves() -> None:
    behind = Behind(Small().app)
    async with opened(behind) as running:
        async with talking(running):
            # Which connections there are is told by nothing else.
            await until(lambda: len(behind.running.changes._listeners) == 2)
        await until(lambda: len(behind.running.changes._listeners) == 1)
        assert len(behind.lines) == 2


async def test_a_refusal_by_the_client_reaches_the_server() -> None:
    async with bridged(Behind(Small().app), "2025-11-25", FORMS) as peer:
        call = await peer.start("greet")
        question = await peer.other("elicitation/create")
        error = {"code": -1, "message": "the user does not want that"}
        await peer.send({"jsonrpc": "2.0", "id": question["id"], "error": error})
        assert (await peer.answer(call))["error"]["message"] == "the client refused elicitation/create"


class Curious(Small):
    """Cancels its questions, or asks late."""

    def __init__(self) -> None:
        super().__init__()
        self.enough = anyio.Event()
        self.app.tool()(self.lose_interest)
        self.app.tool()(self.ask_late)

    async def lose_interest(self, ctx: Context[None]) -> str:
        """Ask until the test sets `enough`."""
        async with background() as tasks:
            tasks.start_soon(ctx.roots)
            await self.enough.wait()
        return "never mind"

    async def ask_late(self, ctx: Context[None]) -> str:
        """Wait, and ask."""
        self.started.set()
        await self.enough.wait()
        return " ".join(root.uri for root in await ctx.roots())


async def test_a_question_outside_of_calls_reaches_the_client() -> None:
    asking = Asking()
    asking.asks_for_roots = True
    roots: Json = {"roots": [{"uri": "file:///a"}]}
    for answer, known in (
        ({"result": roots}, roots),
        ({"error": {"code": -31_000, "message": "not now"}}, {"error": "not now"}),
    ):
        async with bridged(Behind(asking.app), "2025-11-25", FORMS) as peer:
            question = await peer.other("roots/list")
            await peer.send({"jsonrpc": "2.0", "id": question["id"], **answer})
            await until(lambda known=known: asking.roots_are == known)


async def test_a_question_cancelled_by_the_server_is_cancelled_at_the_client() -> None:
    curious = Curious()
    async with bridged(Behind(curious.app), "2025-11-25", FORMS) as peer:
        call = await peer.start("lose_interest")
        question = await peer.other("roots/list")
        curious.enough.set()
        taken_back = await peer.other("notifications/cancelled")
        assert taken_back["params"]["requestId"] == question["id"]
        assert text_of((await peer.answer(call))["result"]) == "never mind"


async def test_time_limits_pause_while_the_client_is_asked() -> None:
    small = Small()
    behind = Behind(small.app)
    async with opened(behind) as running, talking(running, capabilities=FORMS) as peer:
        first, second = await peer.start("wait"), await peer.start("roots")
        question = await peer.other("roots/list")
        # How long a call may still take is told by nothing else: a clock that is set forward would end the wait too.
        calls = running.calls._tasks
        assert [call.cancel_scope.deadline for call in calls] == [float("inf")] * 2
        await peer.reply(question["id"], {"roots": []})
        await peer.answer(second)
        assert [call.cancel_scope.deadline < float("inf") for call in calls] == [True]
        await peer.cancel(first)
        await small.cancelled.wait()


async def test_an_answer_reaches_the_call_that_asked_after_another_call_showed_the_question() -> None:
    curious = Curious()
    async with bridged(Behind(curious.app), "2025-11-25", FORMS) as peer:
        older = await peer.start("ask_late")
        await curious.started.wait()
        newer = await peer.start("wait")
        curious.enough.set()
        question = await peer.other("roots/list")
        await peer.cancel(newer)
        await curious.cancelled.wait()
        await peer.reply(question["id"], {"roots": [{"uri": "file:///b"}]})
        assert text_of((await peer.answer(older))["result"]) == "file:///b"


async def test_a_call_in_an_expired_session_is_repeated_in_a_new_one() -> None:
    plays = iter([good, unanswered("session over"), good])
    sessions: list[Played] = []

    @asynccontextmanager
    async def connect(options: ClientOptions) -> AsyncIterator[Client]:
        sessions.append(Played(next(plays)))
        async with Client(sessions[-1], replace(options, mode="handshake")) as client:
            yield client

    with anyio.fail_after(3 * PATIENCE):
        async with bridge(Upstream("played", connect)).open() as running, talking(running) as peer:
            assert text_of((await vendors(peer, "vendor/do"))["result"]) == "good"
            assert [one.asked for one in sessions[1:]] == [["initialize", "vendor/do"]] * 2


QUESTION = {"messages": [{"role": "user", "content": {"type": "text", "text": "?"}}], "maxTokens": 9}


@pytest.mark.parametrize(("version", "refused"), [(NEWEST_HANDSHAKE, False), (STATELESS, True)])
async def test_a_list_handler_can_ask_only_clients_with_a_session(version: str, refused: bool) -> None:
    telling = Telling("handshake")
    heard: list[str] = []

    async def ask(ctx: Context[None]) -> list[Resource]:
        try:
            heard.append((await ctx.sample("thought", QUESTION)).text)
        except PeerError as error:
            heard.append(str(error))
        return []

    telling.app.lists_resources(ask)
    async with telling.bridged() as running, talking(running, version, {"sampling": {}}) as peer:
        id_ = await peer.begin("resources/list")
        if not refused:
            asked = await peer.other("sampling/createMessage")
            answer = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "so"}}
            await peer.reply(asked["id"], answer)
        assert "result" in await peer.answer(id_)
        assert heard == (["the client refused sampling/createMessage"] if refused else ["so"])


async def test_an_invalid_question_is_refused_and_the_session_continues() -> None:
    async def ask(context: Context[None]) -> Json:
        answers = await context.inputs({"thought": Question("sampling/createMessage", {"messages": 5})})
        return {"content": answers}

    recording = Recording()
    recording.answers["tools/call"] = ask
    async with bridged(Behind(recording.app), "2025-06-18", {"sampling": {}}) as peer:
        for _ in range(2):
            error = (await peer.call("any"))["error"]
            assert error["message"] == "the client refused sampling/createMessage"


async def test_changed_roots_are_announced_only_in_the_session_of_that_client() -> None:
    telling = Telling("handshake")
    roots: Json = {"roots": {"listChanged": True}}
    async with telling.bridged() as running, talking(running, capabilities=roots) as one, talking(running) as other:
        await other.call("add", a=1, b=2)
        await one.call("add", a=1, b=2)
        await one.notify("notifications/roots/list_changed")
        await until(lambda: telling.roots_changed == 1)
