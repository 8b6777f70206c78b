"""Fair shares: no client can take all sessions, requests or subscriptions of a server."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import anyio
import httpx
import pytest

from shared.transports.http.limits import client_shares
from shared.transports.http.limits.client_shares import client_name
from shared.transports.http.limits.endpoint_limits import EndpointLimits, SessionLimits
from tests.shared.transports.http.http_wire import NEWEST_HANDSHAKE, PATIENCE, Json, Site, coming_from, merged, served

SESSIONS = 6
WAIT = "tools/call", {"name": "wait", "arguments": {}}


@asynccontextmanager
async def crowded(sessions: int = SESSIONS) -> AsyncIterator[Site]:
    async with served(limits=EndpointLimits(sessions=SessionLimits(sessions=sessions))) as site:
        yield site


async def handshake(site: Site) -> httpx.Response:
    info = {"name": "test", "version": "1"}
    params = {"protocolVersion": NEWEST_HANDSHAKE, "capabilities": {}, "clientInfo": info}
    return await site.post(site.message("initialize", params))


async def lives(site: Site, session: Json) -> bool:
    return (await site.post(site.message("ping"), session)).status_code == 200


async def test_a_new_client_replaces_an_unused_session_of_the_largest_client() -> None:
    async with crowded() as site, coming_from(site, "127.0.0.2") as other:
        used = await site.initialize()
        assert await lives(site, used)
        for _ in range(SESSIONS - 1):
            await site.initialize()
        assert (await handshake(site)).status_code == 503
        session = await other.initialize()
        assert await lives(other, session)
        assert await lives(site, used)
        assert (await site.health())["sessions"] == SESSIONS


async def test_a_new_client_replaces_the_least_recently_used_session() -> None:
    async with crowded() as site, coming_from(site, "127.0.0.2") as other:
        sessions = [await site.initialize() for _ in range(SESSIONS)]
        for session in [*sessions, sessions[0]]:
            assert await lives(site, session)
        assert await lives(other, await other.initialize())
        assert [await lives(site, session) for session in sessions] == [True, False, *[True] * (SESSIONS - 2)]


async def test_sessions_in_use_are_replaced_while_a_client_has_more_than_half() -> None:
    async with crowded() as site, coming_from(site, "127.0.0.2") as other, AsyncExitStack() as streams:
        for _ in range(SESSIONS):
            session = await site.initialize()
            await streams.enter_async_context(site.client.stream("GET", "/mcp", headers=merged(session)))
        others = [await other.initialize() for _ in range(SESSIONS // 2)]
        assert [await lives(other, session) for session in others] == [True] * (SESSIONS // 2)
        assert (await handshake(other)).status_code == 503


async def test_an_idle_session_is_replaced_before_one_in_use() -> None:
    async with crowded() as site, coming_from(site, "127.0.0.2") as other:
        sessions = [await site.initialize() for _ in range(SESSIONS)]
        async with site.client.stream("GET", "/mcp", headers=merged(sessions[0])):
            # All are used, and the first was used longest ago.
            assert all([await lives(site, session) for session in sessions[1:]])
            await other.initialize()
            assert [await lives(site, session) for session in sessions] == [True, False, *[True] * (SESSIONS - 2)]


async def test_sessions_are_shared_equally_between_clients() -> None:
    async with crowded() as site, AsyncExitStack() as clients:
        several = [
            await clients.enter_async_context(coming_from(site, f"127.0.0.{number}")) for number in range(2, 5)
        ]
        for _ in range(SESSIONS):
            for one in several:
                await handshake(one)
        sessions = [await one.initialize() for one in several if (await handshake(one)).status_code != 503]
        assert not sessions
        assert (await site.health())["sessions"] == SESSIONS


async def test_a_client_replaces_its_own_unused_session(monkeypatch: pytest.MonkeyPatch) -> None:
    async with crowded(2) as site:
        unused, used = await site.initialize(), await site.initialize()
        assert await lives(site, used)
        assert (await handshake(site)).status_code == 503
        monkeypatch.setattr(client_shares, "UNUSED_SECONDS", 0.0)
        again = await site.initialize()
        assert [await lives(site, session) for session in (used, again, unused)] == [True, True, False]


async def test_each_principal_has_its_own_share() -> None:
    limits = EndpointLimits(sessions=SessionLimits(sessions=2))
    async with served(tokens=("one", "two"), limits=limits) as site:
        one, two = ({"Authorization": f"Bearer {token}"} for token in ("one", "two"))
        sessions = [await site.initialize(headers=headers) for headers in (one, one, two)]
        assert [await lives(site, session) for session in sessions] == [False, True, True]


async def test_one_client_cannot_take_all_request_slots() -> None:
    answers: list[Json] = []

    async def waits(one: Site) -> None:
        answers.append((await one.call(*WAIT)).json()["result"])

    async with served(limits=EndpointLimits(requests=4)) as site, coming_from(site, "127.0.0.2") as other:
        async with anyio.create_task_group() as tasks:
            for number, one in enumerate((site, site, other), 1):
                tasks.start_soon(waits, one)
                while (await site.health())["streams"] < number:
                    await anyio.lowlevel.checkpoint()
            refused = await site.call(*WAIT)
            site.probe.release.set()
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
        assert "too many of your requests" in refused.json()["error"]["message"]
        assert len(answers) == 3
        assert (await site.call(*WAIT)).status_code == 200


async def test_one_client_cannot_take_all_listen_streams() -> None:
    async with crowded(4) as site, coming_from(site, "127.0.0.2") as other, AsyncExitStack() as ending:

        async def is_listening(one: Site) -> int:
            stream = one.stream(*one.stateless("subscriptions/listen", {"notifications": {"toolsListChanged": True}}))
            answer: httpx.Response = await ending.enter_async_context(stream)
            return answer.status_code

        assert [await is_listening(one) for one in (site, site, site, other)] == [200, 200, 429, 200]
        assert (await site.call("tools/call", {"name": "echo", "arguments": {"text": "a"}})).status_code == 200
        await ending.aclose()
        await site.idle()
        assert await is_listening(site) == 200


async def test_one_client_cannot_take_all_subscriptions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.server.dispatch.changes.MAX_SUBSCRIPTIONS", 4)

    async def subscribe(site: Site, session: Json, number: int) -> bool:
        message = site.message("resources/subscribe", {"uri": f"memo://{number}"})
        return "result" in (await site.post(message, session)).json()

    async with served() as site, coming_from(site, "127.0.0.2") as other:
        greedy = [await site.initialize() for _ in range(4)]
        got = [await subscribe(site, session, number) for number, session in enumerate(greedy)]
        assert got == [True, True, False, False]
        modest = await other.initialize()
        assert await subscribe(other, modest, 1)
        for session in greedy:
            await site.client.delete("/mcp", headers=merged(session))
        with anyio.fail_after(PATIENCE):
            while not await subscribe(other, modest, 2):
                await anyio.lowlevel.checkpoint()
        again = await site.initialize()
        assert [await subscribe(site, again, number) for number in range(2)] == [True, False]
        await site.client.delete("/mcp", headers=merged(again))
        wanted = {"notifications": {"resourceSubscriptions": ["memo://1"]}}
        for _ in range(3):
            async with site.stream(*site.stateless("subscriptions/listen", wanted)) as stream:
                assert stream.status_code == 200
            await site.idle()


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("192.0.2.1", "192.0.2.2", False),
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("", "", True),
    ],
)
def test_addresses_of_one_ipv6_network_are_one_client(first: str, second: str, same: bool) -> None:
    assert (client_name("p", first) == client_name("p", second)) is same
    assert client_name("p", first) != client_name(None, first)
