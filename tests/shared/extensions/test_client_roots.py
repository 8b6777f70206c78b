"""A server that limits each client to its roots: when it requests them, and the state of the calls."""

import gc
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from weakref import ref

import anyio

from shared import Context, Opening, Resource
from shared.extensions.client_roots import narrow_to_roots
from shared.server.dispatch.connection import serve
from shared.server.handlers.core import CORE
from shared.transports.memory import memory_pair
from tests.clock import forward
from tests.quiet import quiet
from tests.shared.server.peer import CLIENT_INFO, NEWEST_HANDSHAKE, STATELESS, Peer, server, talking

ROOTS = {"roots": {"listChanged": True}}
ONE, TWO = {"roots": [{"uri": "file:///one"}]}, {"roots": [{"uri": "file:///two"}, {"uri": "file:///three"}]}

State = tuple[str, ...]


def app_of_roots(seconds=5.0):
    """A server whose state is ("all",), and for a client with roots their URIs."""
    app = server()
    app.limits = replace(app.limits, roots_seconds=seconds)

    @app.lifespan
    async def opened(opening: Opening) -> AsyncIterator[State]:
        async def narrow(_state: State, uris: Sequence[str]) -> State:
            return tuple(uris)

        narrow_to_roots(opening, narrow)
        yield ("all",)

    @app.tool()
    async def where(ctx: Context[State]) -> str:
        """Says what it works on."""
        return " ".join(ctx.state)

    @app.resource("at:{place}")
    async def at(ctx: Context[State], place: str) -> str:
        return " ".join(ctx.state)

    @app.lists_resources
    async def listed(ctx: Context[State]) -> list[Resource]:
        return [Resource(uri=uri, name="root") for uri in ctx.state]

    @app.completes("resource", "at:{place}", "place")
    async def complete(ctx: Context[State], _typed: str, _settled: dict[str, str]) -> list[str]:
        return list(ctx.state)

    @app.on_subscribe
    async def key(ctx: Context[State], uri: str) -> str:
        return f"{ctx.state} {uri}"

    return app


async def roots_request(peer: Peer) -> int:
    """The id of the roots request, which must be the next message."""
    message = await peer.receive()
    assert message["method"] == "roots/list"
    return message["id"]


def text(answer):
    return answer["result"]["content"][0]["text"]


@asynccontextmanager
async def with_roots(app, roots, version=NEWEST_HANDSHAKE):
    """A peer that has sent its roots in its first call."""
    async with talking(app, version, ROOTS) as peer:
        id_ = await peer.start("where")
        await peer.reply(await roots_request(peer), roots)
        await peer.answer(id_)
        yield peer


async def test_a_client_without_roots_gets_the_state_of_the_server():
    for version in (NEWEST_HANDSHAKE, STATELESS):
        async with talking(app_of_roots(), version) as peer:
            assert await peer.text("where") == "all"


async def test_roots_are_requested_once_and_again_after_they_changed():
    async with with_roots(app_of_roots(), ONE) as peer:
        assert await peer.text("where") == "file:///one"
        assert peer.others == []
        await peer.notify("notifications/roots/list_changed")
        id_ = await peer.start("where")
        await peer.reply(await roots_request(peer), TWO)
        assert text(await peer.answer(id_)) == "file:///two file:///three"


async def test_a_tool_answers_at_once_if_the_roots_are_known():
    app, tasks = app_of_roots(), []

    @app.tool(at_once=lambda ctx: " ".join(ctx.state))
    async def quick(ctx: Context[State]) -> str:
        """Says what it works on."""
        tasks.append("a task")
        return " ".join(ctx.state)

    async with talking(app) as peer:
        assert await peer.text("quick") == "all"
    assert tasks == []
    async with with_roots(app, ONE) as peer:
        assert await peer.text("quick") == "file:///one"
        assert tasks == []
        await peer.notify("notifications/roots/list_changed")
        id_ = await peer.start("quick")
        await peer.reply(await roots_request(peer), TWO)
        assert text(await peer.answer(id_)) == "file:///two file:///three"
    assert tasks == ["a task"]


async def test_roots_that_change_during_a_request_are_requested_again():
    async with talking(app_of_roots(), capabilities=ROOTS) as peer:
        first = await peer.start("where")
        question = await roots_request(peer)
        await peer.notify("notifications/roots/list_changed")
        second = await peer.start("where")
        await peer.reply(question, ONE)
        assert text(await peer.answer(first)) == "file:///one"
        (again,) = peer.others or [await peer.receive()]
        await peer.reply(again["id"], TWO)
        assert text(await peer.answer(second)) == "file:///two file:///three"


async def test_concurrent_calls_share_a_roots_request():
    async with talking(app_of_roots(), capabilities=ROOTS) as peer:
        ids = [await peer.start("where") for _ in range(5)]
        await peer.reply(await roots_request(peer), ONE)
        assert {text(await peer.answer(id_)) for id_ in ids} == {"file:///one"}
        assert peer.others == []


async def test_after_a_cancelled_call_the_next_call_requests_the_roots():
    async with talking(app_of_roots(), capabilities=ROOTS) as peer:
        first, second = await peer.start("where"), await peer.start("where")
        question = await roots_request(peer)
        await peer.cancel(first)
        await peer.other("notifications/cancelled")
        again = await peer.other("roots/list")
        assert again["id"] != question
        await peer.reply(again["id"], ONE)
        assert text(await peer.answer(second)) == "file:///one"


NEEDS = [
    ("tools/call", {"name": "where", "arguments": {}}),
    ("resources/list", {}),
    ("resources/read", {"uri": "at:x"}),
    ("resources/subscribe", {"uri": "at:x"}),
    (
        "completion/complete",
        {"ref": {"type": "ref/resource", "uri": "at:{place}"}, "argument": {"name": "place", "value": ""}},
    ),
]


async def test_every_method_that_uses_the_state_gets_the_narrowed_state():
    app = app_of_roots()
    async with app.open() as running:
        for method, params in NEEDS:
            async with another(running, ONE) as peer:
                answer = await peer.request(method, params)
                assert "all" not in str(answer)
                is_held = running.changes.has_subscribers("('file:///one',) at:x")
                assert "file:///one" in str(answer) or (method == "resources/subscribe" and is_held)


async def test_methods_that_need_no_state_request_no_roots():
    async with talking(app_of_roots(), capabilities=ROOTS) as peer:
        for method in ("tools/list", "resources/templates/list", "ping"):
            assert "result" in await peer.request(method)
        assert peer.others == []


@asynccontextmanager
async def another(running, roots):
    """Another session of a running server, which has sent its roots."""
    ours, theirs = memory_pair()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve, running, theirs)
        peer = Peer(ours, NEWEST_HANDSHAKE, ROOTS)
        params = {"protocolVersion": NEWEST_HANDSHAKE, "capabilities": ROOTS, "clientInfo": CLIENT_INFO}
        await peer.request("initialize", params)
        id_ = await peer.start("where")
        await peer.reply(await roots_request(peer), roots)
        await peer.answer(id_)
        yield peer
        ours.close()
    theirs.close()


async def test_each_session_has_its_own_roots():
    app = app_of_roots()
    async with app.open() as running, another(running, ONE) as one, another(running, TWO) as two:
        assert (await one.text("where"), await two.text("where")) == ("file:///one", "file:///two file:///three")


async def test_an_ended_session_releases_its_state():
    made = []

    class Made(str):
        """A state that can be watched."""

    app = server()

    @app.lifespan
    async def opened(opening: Opening) -> AsyncIterator[str]:
        async def narrow(_state: str, _uris: Sequence[str]) -> str:
            state = Made("narrow")
            made.append(ref(state))
            return state

        narrow_to_roots(opening, narrow)
        yield "all"

    @app.tool()
    async def where(ctx: Context[str]) -> str:
        """Says what it works on."""
        return ctx.state

    async with app.open() as running:
        async with another(running, ONE):
            assert made[0]() == "narrow"
        gc.collect()
        assert made[0]() is None


async def test_a_run_of_a_server_does_not_narrow_another_run():
    app = app_of_roots()
    async with app.open() as one, app.open() as other:
        other.handlers = CORE.handlers
        async with with_roots(one, ONE) as peer, talking(other, capabilities=ROOTS) as elsewhere:
            assert await peer.text("where") == "file:///one"
            assert await elsewhere.text("where") == "all"


# Errors and timeouts

REFUSED = "this server works only in the roots of its client, which are unknown: "


async def test_an_error_or_invalid_roots_refuse_the_call_and_are_requested_again():
    async with talking(app_of_roots(), capabilities=ROOTS) as peer:
        id_ = await peer.start("where")
        error = {"code": -32603, "message": "no"}
        await peer.send({"jsonrpc": "2.0", "id": await roots_request(peer), "error": error})
        answer = await peer.answer(id_)
        assert answer["result"]["isError"]
        assert text(answer) == REFUSED + "the client refused roots/list"
        id_ = await peer.start("where")
        await peer.reply(await roots_request(peer), {"roots": "everywhere"})
        assert text(await peer.answer(id_)).startswith(REFUSED + "the answer to roots/list is invalid")
        id_ = await peer.start("where")
        await peer.reply(await roots_request(peer), ONE)
        assert text(await peer.answer(id_)) == "file:///one"


async def test_a_timeout_of_the_roots_request_refuses_all_waiting_calls():
    async with talking(app_of_roots(), capabilities=ROOTS) as peer:
        ids = [await peer.start("where") for _ in range(3)]
        await quiet()
        forward(5)
        texts = {text(await peer.answer(id_)) for id_ in ids}
        assert texts == {REFUSED + "it did not answer within 5 s"}
        assert [message["method"] for message in peer.others] == ["roots/list", "notifications/cancelled"]


async def test_other_methods_than_tools_are_refused_with_an_error():
    async with talking(app_of_roots(seconds=0.02), capabilities=ROOTS) as peer:
        error = (await peer.request("resources/list"))["error"]
        assert (error["code"], error["message"][: len(REFUSED)]) == (-32603, REFUSED)


# Stateless calls


async def rounds(peer, method, params):
    """The answer to a call whose roots request is answered with ONE."""
    first = (await peer.request(method, params))["result"]
    assert first["resultType"] == "input_required"
    assert [one["method"] for one in first["inputRequests"].values()] == ["roots/list"]
    answers = dict.fromkeys(first["inputRequests"], ONE)
    return await peer.request(method, {**params, "inputResponses": answers, "requestState": first["requestState"]})


async def test_each_stateless_call_requests_or_contains_the_roots():
    async with talking(app_of_roots(), STATELESS, ROOTS) as peer:
        for method, params in (NEEDS[0], NEEDS[2], NEEDS[0]):
            assert "file:///one" in str(await rounds(peer, method, params))
        answer = await peer.request("tools/call", {**NEEDS[0][1], "inputResponses": {"roots": ONE}})
        assert text(answer) == "file:///one"


async def test_stateless_methods_that_cannot_request_roots_return_nothing():
    app = app_of_roots()
    async with app.open() as running, talking(running, STATELESS, ROOTS) as peer:
        for method, params in (NEEDS[1], NEEDS[4]):
            result = (await peer.request(method, params))["result"]
            assert result.get("resources", result.get("completion", {}).get("values")) == []
        await peer.begin("subscriptions/listen", {"notifications": {"resourceSubscriptions": ["at:x"]}})
        await peer.other("notifications/subscriptions/acknowledged")
        assert running.changes.has_subscribers("() at:x")
