"""The sessions and streams of one principal, tried by another: on every transport they are as unknown as ones that
never were, and go on undisturbed.

Another session of the same principal has its requests, questions and streams to itself as well.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from tests.checks.isolation.parties import FORMS, TOKENS, Party, parties
from tests.shared.transports.http.http_wire import Json, events, first_events, make_server
from tests.shared.transports.http.sse_wire import initialized
from tests.shared.transports.http.web_socket import WebSocket, web_socket

BOB = {"Authorization": f"Bearer {TOKENS[1]}"}
ALICE = {"Authorization": f"Bearer {TOKENS[0]}"}

others = pytest.mark.parametrize(
    "tokens",
    [
        pytest.param(TOKENS, id="principals"),
        pytest.param((TOKENS[0], TOKENS[0]), id="sessions"),
        pytest.param((), id="nobody"),
    ],
)
"""Two principals, two sessions of one, and two that nobody knows."""

Attempt = Callable[[Party], Awaitable[Any]]


def notification(method: str, params: Json | None = None) -> Json:
    return {"jsonrpc": "2.0", "method": method, "params": params or {}}


# Each takes a party who names the session of somebody else, and gives the HTTP response.
ATTEMPTS: dict[str, Attempt] = {
    "a request": lambda one: one.post(one.site.message("tools/list")),
    "a call": lambda one: one.post(one.site.message("tools/call", {"name": "echo", "arguments": {"text": "x"}})),
    "a cancellation": lambda one: one.post(notification("notifications/cancelled", {"requestId": "waiting"})),
    "an answer": lambda one: one.post({"jsonrpc": "2.0", "id": 1, "result": {"action": "decline"}}),
    "a log level": lambda one: one.post(one.site.message("logging/setLevel", {"level": "debug"})),
    "a subscription": lambda one: one.post(one.site.message("resources/subscribe", {"uri": "memo://one"})),
    "a second handshake": lambda one: one.post(one.site.message("initialize", {})),
    "its stream": lambda one: one.site.client.get("/mcp", headers={"Accept": "text/event-stream", **one.headers}),
    "a resumed stream": lambda one: one.site.client.get(
        "/mcp", headers={"Accept": "text/event-stream", **one.headers, "Last-Event-ID": "1-1"}
    ),
    "its end": lambda one: one.site.client.delete("/mcp", headers=one.headers),
}


async def test_the_session_of_a_principal_is_unknown_to_others() -> None:
    async with parties(make_server()) as (alice, bob):
        alice = await alice.opened()
        nobody = Party(alice.site, None)
        nobody.session = {name: value for name, value in (alice.session or {}).items() if name != "Authorization"}
        async with waiting_call(alice):
            for thief, status in ((bob.holding(alice), 404), (nobody, 401)):
                for name, attempt in ATTEMPTS.items():
                    answer = await attempt(thief)
                    assert answer.status_code == status, f"{name}: {answer.text}"
                    assert "echo" not in answer.text, name
        assert (await alice.text("echo", text="still here")) == "still here"


@asynccontextmanager
async def waiting_call(one: Party) -> AsyncIterator[None]:
    """A call of that party with the id "waiting", under way as long as the block, which must not disturb it."""
    answers: list[Json] = []

    async def wait() -> None:
        message, headers = one.message("tools/call", {"name": "wait", "arguments": {}})
        answers.append(await one.answer_to({**message, "id": "waiting"}, headers))

    probe = one.site.probe
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        await probe.started.wait()
        yield
        assert not probe.cancelled.is_set()
        probe.release.set()
    assert answers[0]["result"]["content"][0]["text"] == "released"


@others
async def test_a_stream_is_resumed_only_in_its_session(tokens: tuple[str, ...]) -> None:
    async with parties(make_server(), tokens=tokens) as (alice, bob):
        alice, bob = await alice.opened(), await bob.opened()
        message, headers = alice.message(
            "tools/call", {"name": "report", "arguments": {}, "_meta": {"progressToken": 1}}
        )
        async with alice.site.stream(message, headers) as response:
            seen = await first_events(response, 2)
        resumed = {"Accept": "text/event-stream", "Last-Event-ID": seen[0].id or ""}
        assert resumed["Last-Event-ID"]
        refused = await bob.site.client.get("/mcp", headers={**bob.headers, **resumed})
        assert refused.status_code == 400, refused.text
        async with alice.site.client.stream("GET", "/mcp", headers={**alice.headers, **resumed}) as response:
            assert [event async for event in events(response)][-1]["id"] == message["id"]


ACTS: list[Json] = [
    notification("notifications/cancelled", {"requestId": "waiting"}),
    notification("notifications/progress", {"progressToken": 1, "progress": 1}),
    {"jsonrpc": "2.0", "id": 1, "result": {"action": "accept", "content": {"colour": "bob's"}}},
]


@others
async def test_ids_of_a_session_refer_only_to_its_requests(tokens: tuple[str, ...]) -> None:
    async with parties(make_server(), tokens=tokens) as (alice, bob):
        alice, bob = await alice.opened(), await bob.opened()
        async with waiting_call(alice):
            for act in ACTS:
                assert (await bob.post(act)).status_code == 202
                await bob.text("echo", text="that was read")


@others
async def test_a_question_is_answered_only_in_its_session(tokens: tuple[str, ...]) -> None:
    async with parties(make_server(), tokens=tokens) as (alice, bob):
        alice, bob = await alice.opened(), await bob.opened()
        message, headers = alice.message("tools/call", {"name": "favourite", "arguments": {}})
        async with alice.site.stream(message, headers) as response:
            coming = events(response)
            question = await anext(coming)
            assert question["method"] == "elicitation/create"
            for one, colour in ((bob, "bob's"), (alice, "red")):
                content = {"action": "accept", "content": {"colour": colour}}
                await one.post({"jsonrpc": "2.0", "id": question["id"], "result": content})
                await one.text("echo", text="that was read")
            answer = await anext(coming)
    assert answer["result"]["content"][0]["text"] == "red"


async def test_the_log_level_belongs_to_its_session() -> None:
    async with parties(make_server(), tokens=(TOKENS[0], TOKENS[0])) as (one, other):
        one, other = await one.opened(), await other.opened()
        await other.ask("logging/setLevel", {"level": "emergency"})
        message, headers = one.message("tools/call", {"name": "flood", "arguments": {}})
        async with one.site.stream(message, headers) as response:
            assert (await anext(events(response)))["method"] == "notifications/message"


@others
async def test_a_subscription_belongs_to_its_session(tokens: tuple[str, ...]) -> None:
    async with parties(make_server(), tokens=tokens) as (alice, bob):
        alice, bob = await alice.opened(), await bob.opened()
        await alice.ask("resources/subscribe", {"uri": "memo://one"})
        await bob.ask("resources/unsubscribe", {"uri": "memo://one"})
        get = {"Accept": "text/event-stream"}
        async with (
            alice.site.client.stream("GET", "/mcp", headers={**alice.headers, **get}) as hers,
            bob.site.client.stream("GET", "/mcp", headers={**bob.headers, **get}) as his,
        ):
            alice.site.running.changes.resource("memo://one")
            alice.site.running.changes.tools()
            told, heard = events(hers), events(his)
            assert (await anext(told))["method"] == "notifications/resources/updated"
            assert (await anext(heard))["method"] == "notifications/tools/list_changed"


# HTTP+SSE


@pytest.mark.parametrize("headers", [BOB, {}], ids=["another principal", "no token"])
async def test_the_address_of_a_foreign_stream_accepts_no_message(headers: Json) -> None:
    messages: list[Json] = [
        {"jsonrpc": "2.0", "id": 9, "method": "tools/list"},
        notification("notifications/cancelled", {"requestId": 1}),
        {"jsonrpc": "2.0", "id": 1, "result": {"action": "decline"}},
    ]
    async with (
        parties(make_server()) as (alice, bob),
        initialized(alice.site, ALICE, capabilities=FORMS) as stream,
    ):
        for message in messages:
            answer = await bob.site.client.post(stream.address, json=message, headers=headers)
            assert answer.status_code == (404 if headers else 401)
        assert await stream.call("echo", {"text": "still here"}) == "still here"
        assert stream.told == []


async def test_a_streamable_http_session_is_unknown_to_http_and_sse() -> None:
    async with parties(make_server()) as (alice, bob), initialized(bob.site, BOB) as stream:
        alice = await alice.opened()
        id_ = (alice.session or {})["Mcp-Session-Id"]
        for headers in (ALICE, BOB):
            posted = await alice.site.client.post(
                f"/messages?session_id={id_}", json=alice.site.message("tools/list"), headers=headers
            )
            assert posted.status_code == 404
        theirs = {**(alice.session or {}), "Mcp-Session-Id": stream.address.rpartition("=")[2]}
        assert (await alice.site.post(alice.site.message("tools/list"), theirs)).status_code == 404


# WebSocket


@pytest.mark.parametrize("tokens", [TOKENS, (TOKENS[0], TOKENS[0])], ids=["principals", "connections"])
async def test_a_websocket_receives_and_cancels_nothing_of_another(tokens: tuple[str, str]) -> None:
    hers, his = ({"Authorization": f"Bearer {token}"} for token in tokens)
    async with (
        parties(make_server(), tokens=tokens) as (alice, _),
        web_socket(alice.site, hers) as one,
        web_socket(alice.site, his) as other,
    ):
        await one.initialize()
        await other.initialize()
        await one.send({"jsonrpc": "2.0", "id": "waiting", "method": "tools/call", "params": {"name": "wait"}})
        await alice.site.probe.started.wait()
        await other.send(notification("notifications/cancelled", {"requestId": "waiting"}))
        await echoed(other)
        assert not alice.site.probe.cancelled.is_set()
        alice.site.probe.release.set()
        assert (await one.receive())["result"]["content"][0]["text"] == "released"


async def test_a_question_on_a_websocket_is_answered_only_there() -> None:
    async with (
        parties(make_server()) as (alice, _),
        web_socket(alice.site, ALICE) as one,
        web_socket(alice.site, BOB) as other,
    ):
        await one.initialize(capabilities=FORMS)
        await other.initialize(capabilities=FORMS)
        await one.send({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "favourite"}})
        question = await one.receive()
        for socket, colour in ((other, "bob's"), (one, "red")):
            content = {"action": "accept", "content": {"colour": colour}}
            await socket.send({"jsonrpc": "2.0", "id": question["id"], "result": content})
            if socket is other:
                await echoed(other)
        assert (await one.receive())["result"]["content"][0]["text"] == "red"


async def echoed(socket: WebSocket) -> None:
    answer = await socket.call("echo", text="mine")
    assert answer["result"]["content"][0]["text"] == "mine"


# Without sessions


async def test_a_state_of_one_principal_is_refused_from_another() -> None:
    async with parties(make_server()) as (alice, bob):
        params = {"name": "favourite", "arguments": {}}
        asked = (await alice.ask("tools/call", params))["result"]
        brought = {"inputResponses": {"colour": {"action": "accept", "content": {"colour": "red"}}}}
        again = {**params, **brought, "requestState": asked["requestState"]}
        assert (await bob.ask("tools/call", again))["error"]["code"] == -32602
        assert (await alice.ask("tools/call", again))["result"]["content"][0]["text"] == "red"


async def test_a_stateless_request_does_not_cancel_one_of_the_same_id() -> None:
    async with parties(make_server()) as (alice, bob), waiting_call(alice):
        params = {"requestId": "waiting", "_meta": bob.message("ping")[0]["params"]["_meta"]}
        headers = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "notifications/cancelled"}
        await bob.post(notification("notifications/cancelled", params), **headers)
        assert await bob.text("echo", text="that was read") == "that was read"
