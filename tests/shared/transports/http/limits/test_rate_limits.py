"""Rate limits per principal, and limits on failed authentication."""

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream

from shared.auth.policy import ALL_OTHERS
from shared.auth.tokens import StaticTokens
from shared.contracts import Rate
from shared.protocol.http.rules import Denial, HttpRequest
from shared.protocol.identity import Principal
from shared.stores.memory_limiter import MemoryLimiter
from shared.testing import replicas
from shared.transports.http.limits import failed_logins
from shared.transports.http.limits.endpoint_limits import ClientLimits, EndpointLimits
from shared.transports.http.limits.rate_limits import account_of
from tests.clock import Clock
from tests.shared.transports.http.http_wire import Json, Site, coming_from, listening, make_server, merged, served
from tests.shared.transports.http.sse_wire import streaming
from tests.shared.transports.http.web_socket import web_socket

ADA, BOB = {"Authorization": "Bearer ada"}, {"Authorization": "Bearer bob"}
WAIT = {"name": "wait", "arguments": {}}
FEW = ClientLimits(per_second=0.01, burst=5)


class Named(StaticTokens):
    """Knows two tokens, and counts its verifications."""

    def __init__(self, *, knows: bool = True) -> None:
        super().__init__(["ada", "bob"])
        self.knows_all = knows
        self.seen: set[str | None] = set()
        self.asked = 0

    async def authenticate(self, request: HttpRequest) -> Principal | Denial | None:
        self.asked += 1
        sender = await super().authenticate(request)
        if isinstance(sender, Principal):
            self.seen.add(request.headers.get("authorization"))
        return sender

    def knows(self, request: HttpRequest) -> bool:
        return self.knows_all or request.headers.get("authorization") in self.seen


@asynccontextmanager
async def limited(limits: ClientLimits = FEW, **options: Any) -> AsyncIterator[tuple[Site, Clock]]:
    """Serves with limits per client and a stopped clock; yields the site and the clock."""
    clock = Clock(1_000.0)
    made = EndpointLimits(clients=limits)
    async with served(limits=made, limiter=MemoryLimiter(clock), **options) as site:
        yield site, clock


async def ask(site: Site, headers: Json | None = None, text: str = "x") -> httpx.Response:
    message, routing = site.stateless("tools/call", {"name": "echo", "arguments": {"text": text}})
    return await site.post(message, {**routing, **(headers or {})})


def raw(message: Json) -> bytes:
    return json.dumps(message).encode()


def sized(message: Json) -> Json:
    return {"Content-Length": str(len(raw(message)))}


async def attempts(site: Site, *headers: Json) -> list[int]:
    """Returns the statuses of calls with these headers, sent in sequence on one connection (there are hundreds)."""
    message, routing = site.stateless("tools/call", {"name": "echo", "arguments": {"text": "x"}})
    usual, found = {"Host": f"localhost:{site.port}", **sized(message), **routing}, list[int]()
    async with await anyio.connect_tcp("127.0.0.1", site.port) as stream:
        received = BufferedByteReceiveStream(stream)
        for one in headers:
            lines = [f"{name}: {value}" for name, value in merged({**usual, **one})]
            await stream.send("\r\n".join(["POST /mcp HTTP/1.1", *lines, "", ""]).encode() + raw(message))
            head = (await received.receive_until(b"\r\n\r\n", 10_000)).decode().lower()
            await received.receive_exactly(int(re.findall(r"content-length: (\d+)", head)[0]))
            found.append(int(head.split(" ", 2)[1]))
    return found


def guesses(count: int) -> list[Json]:
    """Returns headers with so many invalid tokens."""
    return [{"Authorization": f"Bearer {number}"} for number in range(count)]


def limits_named(answer: httpx.Response) -> tuple[int, str, str]:
    """Returns the status, the limit and the Retry-After of an answer."""
    return answer.status_code, answer.json()["error"]["data"]["limit"], answer.headers["retry-after"]


async def counted(site: Site, headers: Json | None = None) -> list[str]:
    text = (await site.client.get("/metrics", headers=merged(headers))).text
    return [line for line in text.splitlines() if re.match(r"mcp_limited_total\{.* [1-9]", line)]


def test_an_account_is_the_principal_or_else_the_address() -> None:
    assert account_of("ada@example.org@10.0.0.1") == "ada@example.org"
    assert account_of("@10.0.0.1") == "@10.0.0.1"


async def test_too_many_requests_get_429_with_retry_after() -> None:
    async with limited() as (site, clock):
        assert [(await ask(site)).status_code for _ in range(5)] == [200] * 5
        assert limits_named(await ask(site)) == (429, "rate", "100")
        clock.now += 100
        assert (await ask(site)).status_code == 200
        assert await counted(site) == ['mcp_limited_total{limit="rate",server="sample"} 1.0']


async def test_principals_are_counted_separately_whatever_their_address() -> None:
    async with limited(authenticator=Named()) as (site, _), coming_from(site, "127.0.0.2") as elsewhere:
        for _ in range(5):
            await ask(site, ADA)
        assert (await ask(elsewhere, ADA)).status_code == 429
        assert (await ask(site, BOB)).status_code == 200


async def test_unauthenticated_requests_are_counted_by_address() -> None:
    async with limited() as (site, _), coming_from(site, "127.0.0.2") as elsewhere:
        for _ in range(5):
            await ask(site)
        assert (await ask(site)).status_code == 429
        assert (await ask(elsewhere)).status_code == 200


async def test_each_request_of_an_http_batch_counts() -> None:
    async with limited(ClientLimits(per_second=0.01, burst=8)) as (site, _):
        session = await site.initialize("2025-03-26")
        pings = [site.message("ping") for _ in range(4)]
        assert (await site.post(pings, session)).status_code == 200
        assert limits_named(await site.post(pings, session))[:2] == (429, "rate")
        assert (await site.post(site.message("ping"), session)).status_code == 200


async def test_websocket_messages_over_the_rate_are_answered_with_an_error() -> None:
    async with limited(ClientLimits(per_second=0.01, burst=4)) as (site, _), web_socket(site) as socket:
        answers = []
        for number in range(5):
            await socket.send({"jsonrpc": "2.0", "id": number, "method": "ping"})
            answers.append(json.loads((await socket.next()).data))
        assert [one["id"] for one in answers] == [0, 1, 2, 3, 4]
        assert answers[-1]["error"]["data"]["limit"] == "rate"


async def test_each_request_of_a_batch_counts_on_a_websocket() -> None:
    async with limited(ClientLimits(per_second=0.01, burst=8)) as (site, _), web_socket(site) as socket:
        info = {"name": "test", "version": "1"}
        opening = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": info}
        assert "result" in await socket.request("initialize", opening)
        pings = [site.message("ping") for _ in range(4)]
        limits = list[Any]()
        for _ in range(2):
            await socket.send(pings)
            answers = json.loads((await socket.next()).data)
            limits.append([answer.get("error", {}).get("data", {}).get("limit") for answer in answers])
        assert limits == [[None] * 4, ["rate"] * 4]


async def test_sse_messages_over_the_rate_get_429() -> None:
    async with limited(ClientLimits(per_second=0.01, burst=4)) as (site, _), streaming(site) as client:
        statuses = [(await client.post(site.message("ping"))).status_code for _ in range(4)]
        assert statuses[-1] == 429


async def test_each_request_of_a_batch_counts_over_http_sse() -> None:
    async with limited(ClientLimits(per_second=0.01, burst=8)) as (site, _), streaming(site) as client:
        await client.initialize("2025-03-26")  # three requests, including the stream
        pings = [site.message("ping") for _ in range(4)]
        assert (await client.post(pings)).status_code == 202
        assert limits_named(await client.post(pings))[:2] == (429, "rate")
        assert (await client.post(site.message("ping"))).status_code == 429


async def test_each_request_of_a_batch_forwarded_by_another_replica_counts() -> None:
    limits = EndpointLimits(clients=ClientLimits(per_second=0.01, burst=12))
    async with (
        replicas(make_server(), 2) as (one, other),
        listening(one, limits=limits) as here,
        listening(other, limits=limits) as there,
        streaming(here) as client,
    ):
        await client.initialize("2025-03-26")
        client.posts_at(there)
        assert (await client.post([here.message("ping") for _ in range(10)])).status_code == 202
        await client.next()
        assert (await client.post(here.message("ping"))).status_code == 429


async def test_replicas_count_together() -> None:
    limits = EndpointLimits(clients=ClientLimits(per_second=0.01, burst=4))
    async with (
        replicas(make_server(), 2) as (one, other),
        listening(one, limits=limits) as here,
        listening(other, limits=limits) as there,
    ):
        assert [(await ask(site)).status_code for site in (here, there) * 3] == [200] * 4 + [429] * 2


@pytest.mark.parametrize("is_narrowed", [False, True])
async def test_the_call_limit_of_a_principal_spans_its_connections(is_narrowed: bool) -> None:
    async with limited(ClientLimits(calls=2), authenticator=Named()) as (site, _), make_server().open() as narrowed:
        if is_narrowed:
            site.running.parts.narrow(ALL_OTHERS, narrowed)
        sessions = [await site.initialize(headers=ADA) for _ in range(3)]
        async with anyio.create_task_group() as tasks:
            for session in sessions[:2]:
                tasks.start_soon(site.post, site.message("tools/call", WAIT), session)
            while (await site.client.get("/healthz", headers=ADA)).json()["streams"] < 2:
                await anyio.lowlevel.checkpoint()
            echo = {"name": "echo", "arguments": {"text": "x"}}
            refused = await site.post(site.message("tools/call", echo), sessions[2])
            assert limits_named(refused) == (429, "calls", "1")
            assert (await ask(site, ADA)).status_code == 429
            assert (await ask(site, BOB)).status_code == 200
            for run in (site.running, narrowed):
                run.state.release.set()
        assert (await ask(site, ADA)).status_code == 200


async def test_an_abandoned_call_does_not_count() -> None:
    async with limited(ClientLimits(calls=1)) as (site, _):
        message, routing = site.stateless("tools/call", WAIT)
        async with site.raw(*[f"{k}: {v}" for k, v in merged({**routing, **sized(message)})], body=raw(message)):
            await site.probe.started.wait()
            assert (await ask(site)).status_code == 429
        await site.probe.cancelled.wait()
        await site.idle()
        assert (await ask(site)).status_code == 200


async def test_sessions_of_a_principal_have_a_limit() -> None:
    async with limited(ClientLimits(sessions=2), authenticator=Named()) as (site, _):
        first = await site.initialize(headers=ADA)
        await site.initialize(headers=ADA)
        info = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        refused = await site.post(site.message("initialize", info), ADA)
        assert limits_named(refused) == (429, "sessions", "60")
        await site.initialize(headers=BOB)
        await site.client.delete("/mcp", headers=merged(first))
        await site.initialize(headers=ADA)


@pytest.mark.parametrize("size", [3_000, 300_000])
async def test_request_and_answer_bytes_count_even_over_the_allowance(size: int) -> None:
    async with limited(ClientLimits(day_bytes=5_000), authenticator=Named()) as (site, clock):
        assert (await ask(site, {**ADA, "Accept-Encoding": "identity"}, "x" * size)).status_code == 200
        status, limit, pause = limits_named(await ask(site, ADA))
        assert (status, limit) == (429, "bytes")
        assert (await ask(site, BOB)).status_code == 200
        clock.now += int(pause)
        assert (await ask(site, ADA)).status_code == 200


async def test_websocket_bytes_count() -> None:
    async with limited(ClientLimits(day_bytes=5_000)) as (site, _), web_socket(site) as socket:
        await socket.initialize()
        assert "result" in await socket.call("echo", text="x" * 3_000)
        assert (await socket.call("echo", text="x"))["error"]["data"]["limit"] == "bytes"


async def test_websockets_count_as_sessions() -> None:
    async with limited(ClientLimits(sessions=1)) as (site, _), web_socket(site) as socket:
        await socket.initialize()
        info = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        assert limits_named(await site.post(site.message("initialize", info)))[:2] == (429, "sessions")


# Failed authentication


async def test_token_guesses_over_the_limit_get_429_without_verification() -> None:
    authenticator = Named(knows=False)
    async with limited(ClientLimits(), authenticator=authenticator) as (site, clock):
        assert await attempts(site, *guesses(210)) == [401] * 201 + [429] * 9
        assert authenticator.asked == 201
        clock.now += 1
        assert (await ask(site, {"Authorization": "Bearer x"})).status_code == 401
        assert await counted(site, ADA) == ['mcp_limited_total{limit="attempts",server="sample"} 9.0']


async def test_known_tokens_are_served_while_another_client_guesses() -> None:
    async with limited(ClientLimits(), authenticator=Named(knows=False)) as (site, _):
        assert (await ask(site, ADA)).status_code == 200
        await attempts(site, *guesses(202))
        refused = await ask(site, BOB)
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
        assert (await ask(site, ADA)).status_code == 200


async def test_static_tokens_are_always_verified() -> None:
    async with limited(ClientLimits(), tokens=("ada",)) as (site, _):
        await attempts(site, *guesses(202))
        assert (await ask(site, ADA)).status_code == 200


async def test_requests_without_a_token_are_limited_separately() -> None:
    async with limited(authenticator=Named(knows=False)) as (site, _):
        assert [(await ask(site)).status_code for _ in range(6)] == [401] * 5 + [429]
        assert (await ask(site, ADA)).status_code == 200
        assert (await site.client.get("/healthz")).status_code == 200


WORTHLESS: dict[str, Json] = {
    "another scheme": {"Authorization": "Basic YTpi"},
    "another host": {**ADA, "Host": "evil.example"},
    "another origin": {**ADA, "Origin": "http://evil.example"},
}


@pytest.mark.parametrize("headers", WORTHLESS.values(), ids=WORTHLESS)
async def test_repeated_invalid_credentials_end_in_429(headers: Json) -> None:
    async with limited(ClientLimits(per_second=0.01, burst=20), authenticator=Named()) as (site, _):
        statuses = await attempts(site, *[headers] * 230)
        assert statuses[0] in (401, 403)
        assert statuses[-1] == 429
        assert (await ask(site, ADA)).status_code == 200


class Pausing(Named):
    """Verifies tokens only once `go` is set."""

    def __init__(self) -> None:
        super().__init__(knows=False)
        self.go = anyio.Event()

    async def authenticate(self, request: HttpRequest) -> Principal | Denial | None:
        sender = await super().authenticate(request)
        await self.go.wait()
        return sender


async def test_concurrent_token_guesses_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failed_logins, "RATE", Rate(per_second=0.01, burst=3))
    authenticator, statuses = Pausing(), list[int]()

    async def guess(headers: Json) -> None:
        statuses.append((await ask(site, headers)).status_code)

    async with limited(ClientLimits(), authenticator=authenticator) as (site, _), anyio.create_task_group() as tasks:
        for headers in guesses(5):
            tasks.start_soon(guess, headers)
        while len(statuses) < 2:
            await anyio.sleep(0.001)
        assert (statuses, authenticator.asked) == ([429, 429], 3)
        authenticator.go.set()
    assert sorted(statuses) == [401, 401, 401, 429, 429]


class Denying(Named):
    """Denies all but known tokens, with a given denial."""

    def __init__(self, denial: Denial) -> None:
        super().__init__(knows=False)
        self.denial = denial

    async def authenticate(self, request: HttpRequest) -> Principal | Denial | None:
        sender = await super().authenticate(request)
        return self.denial if isinstance(sender, Denial) else sender


@pytest.mark.parametrize(
    "denial",
    [Denial("no issuer", "", 503), Denial("a nonce", "DPoP", 401, (("dpop-nonce", "n"),))],
    ids=["no issuer", "a nonce"],
)
async def test_denials_not_caused_by_the_token_are_not_counted_as_guesses(denial: Denial) -> None:
    async with limited(ClientLimits(), authenticator=Denying(denial)) as (site, _):
        assert set(await attempts(site, *guesses(210))) == {denial.status}
        assert (await ask(site, ADA)).status_code == 200


async def test_a_trusted_proxy_names_the_limited_address() -> None:
    async with limited(trusted_proxies=("127.0.0.0/8",)) as (site, _):
        forwarded = [{"X-Forwarded-For": f"198.51.100.1, {address}"} for address in ("192.0.2.1", "192.0.2.2")]
        for _ in range(5):
            await ask(site, forwarded[0])
        assert [(await ask(site, one)).status_code for one in forwarded] == [429, 200]


async def test_an_untrusted_proxy_is_limited_by_its_own_address() -> None:
    async with limited(trusted_proxies=("192.0.2.0/24",)) as (site, _):
        for number in range(5):
            await ask(site, {"X-Forwarded-For": f"192.0.2.{number}"})
        assert (await ask(site, {"X-Forwarded-For": "198.51.100.7"})).status_code == 429


async def test_ipv4_clients_of_a_dual_stack_socket_are_limited_separately() -> None:
    at_both = limited(host="::", allowed_hosts=("127.0.0.1",))
    async with at_both as (site, _), coming_from(site, "127.0.0.2") as other:
        for _ in range(5):
            await ask(site)
        assert [(await ask(one)).status_code for one in (site, other)] == [429, 200]


async def test_a_trusted_proxy_is_recognized_on_a_dual_stack_socket() -> None:
    async with limited(host="::", allowed_hosts=("127.0.0.1",), trusted_proxies=("127.0.0.1",)) as (site, _):
        forwarded = [{"X-Forwarded-For": address} for address in ("::ffff:192.0.2.1", "192.0.2.1", "192.0.2.2")]
        for _ in range(5):
            await ask(site, forwarded[0])
        assert [(await ask(site, one)).status_code for one in forwarded] == [429, 429, 200]
