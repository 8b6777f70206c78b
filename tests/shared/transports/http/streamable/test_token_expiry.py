"""Streams whose token expires or is revoked."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest

from shared.auth import tokens_file
from shared.auth.tokens import StaticTokens
from shared.auth.tokens_file import TokensFile, digest_of
from shared.protocol.http.rules import Denial, HttpRequest
from shared.protocol.identity import Principal
from shared.transports.http.streamable import token_expiry
from tests.shared.transports.http.http_wire import (
    IN_BOTH,
    PATIENCE,
    Site,
    Two,
    events,
    merged,
    read_events,
    served,
)
from tests.shared.transports.http.sse_wire import initialized
from tests.shared.transports.http.web_socket import web_socket

LISTEN = "subscriptions/listen"


class Clock:
    """The time, and an authenticator of tokens named `END`, `LATER` and `NEVER` by their expiry."""

    END, LATER, NEVER = "end", "later", "never"

    def __init__(self) -> None:
        self.now = 0.0
        self.ends = {self.END: 1_000.0, self.LATER: 2_000.0, self.NEVER: None}

    async def authenticate(self, request: HttpRequest) -> Principal | Denial:
        """Returns the principal of the token, with its expiry."""
        kind = (request.headers.get("authorization") or "").removeprefix("Bearer ")
        ends = self.ends[kind]
        if ends is not None and ends <= self.now:
            return Denial("the token is not valid", "Bearer")
        return Principal("ada", expires=ends)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(token_expiry, "time", SimpleNamespace(time=lambda: made.now))
    monkeypatch.setattr(token_expiry, "CHECK_SECONDS", 0.01)
    return made


@asynccontextmanager
async def site_of(clock: Clock) -> AsyncIterator[Site]:
    async with served(authenticator=clock) as site:
        yield site


def bearer(token: str) -> dict[str, Any]:
    return {"Authorization": f"Bearer {token}"}


async def test_an_expired_token_ends_a_listen_stream_with_its_result(clock: Clock) -> None:
    async with site_of(clock) as site:
        message, headers = site.stateless(LISTEN, {"notifications": {"toolsListChanged": True}})
        async with site.stream(message, {**headers, **bearer(Clock.END)}) as answer:
            stream = events(answer)
            await anext(stream)
            clock.now = 1_000.0
            assert any("result" in one for one in [one async for one in stream])
        assert site.running.changes.subscribed_resources == 0


async def test_a_running_call_finishes_after_its_token_expires(clock: Clock) -> None:
    async with site_of(clock) as site:
        message, headers = site.stateless("tools/call", {"name": "wait", "arguments": {}})
        answers: list[Any] = []

        async def call() -> None:
            answers.append(await site.post(message, {**headers, **bearer(Clock.END)}))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await site.probe.started.wait()
            clock.now = 1_500.0
            site.probe.release.set()
        assert answers[0].json()["result"]["content"][0]["text"] == "released"


async def test_an_expired_token_ends_a_get_stream_which_a_new_token_resumes(clock: Clock) -> None:
    async with site_of(clock) as site:
        session = await site.initialize(headers=bearer(Clock.END))
        async with site.client.stream("GET", "/mcp", headers=merged(session)) as stream:
            await site_streams(site, 1)
            clock.now = 1_000.0
            *_, last = [event async for event in read_events(stream)]
            assert last.retry is not None
        async with site.client.stream("GET", "/mcp", headers=merged(session)) as refused:
            assert refused.status_code == 401
        with_next = merged({**session, **bearer(Clock.LATER)})
        async with site.client.stream("GET", "/mcp", headers=with_next) as stream:
            assert stream.status_code == 200


async def site_streams(site: Site, count: int) -> None:
    """Waits until so many streams are read."""
    while (await site.client.get("/healthz", headers=bearer(Clock.NEVER))).json()["streams"] != count:
        await anyio.lowlevel.checkpoint()


async def test_a_newer_token_prolongs_an_sse_session(clock: Clock) -> None:
    sent = bearer(Clock.END)
    async with site_of(clock) as site, initialized(site, sent) as client:
        sent.update(bearer(Clock.LATER))
        assert await client.call("echo", {"text": "first"}) == "first"
        clock.now = 1_500.0
        assert await client.call("echo", {"text": "second"}) == "second"
        clock.now = 2_000.0
        assert await client.rest() == []


async def test_a_newer_token_prolongs_a_stream(clock: Clock) -> None:
    opened, newer = (Principal("ada", expires=clock.ends[kind]) for kind in (Clock.END, Clock.LATER))
    ended = anyio.Event()
    clock.now = 1_500.0
    with token_expiry.end_with_token(opened, lambda: newer, ended.set):
        assert not ended.is_set()
        clock.now = 2_000.0
        await ended.wait()


async def test_an_expired_token_closes_a_websocket(clock: Clock) -> None:
    headers: dict[str, str | None] = {"Authorization": "Bearer end"}
    async with site_of(clock) as site, web_socket(site, headers) as socket:
        await socket.initialize()
        clock.now = 1_000.0
        assert await socket.closed() == (1008, "the token is no longer valid")


async def test_a_token_without_expiry_ends_nothing(clock: Clock) -> None:
    async with site_of(clock) as site, initialized(site, bearer(Clock.NEVER)) as client:
        clock.now = 1e12
        assert await client.call("echo", {"text": "hi"}) == "hi"


REVOKED = """
[ada]
digest = "{}"
"""


@pytest.mark.parametrize("change", ["", REVOKED.format(digest_of("ada")) + 'scopes = ["read"]'], ids=["gone", "less"])
async def test_a_revoked_token_ends_its_streams(change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_expiry, "REVOKED_SECONDS", 0.01)
    monkeypatch.setattr(tokens_file, "CHECK_SECONDS", 0.0)
    path = tmp_path / "tokens.toml"
    path.write_text(REVOKED.format(digest_of("ada")))
    headers = bearer("ada")
    async with (
        served(authenticator=StaticTokens((), TokensFile(path))) as site,
        web_socket(site, headers=headers) as socket,
    ):
        await socket.initialize()
        path.write_text(change)
        with anyio.fail_after(20):
            closed = await socket.closed()
    assert closed == (1008, "the token is no longer valid")


@IN_BOTH
async def test_a_revoked_token_ends_its_get_stream_at_another_replica(
    two: Two, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_expiry, "REVOKED_SECONDS", 0.01)
    monkeypatch.setattr(tokens_file, "CHECK_SECONDS", 0.0)
    path = tmp_path / "tokens.toml"
    path.write_text(REVOKED.format(digest_of("ada")))
    async with two(authenticator=StaticTokens((), TokensFile(path))) as (here, there):
        session = merged(await here.initialize(headers=bearer("ada")))
        async with there.client.stream("GET", "/mcp", headers=session) as stream:
            path.write_text("")
            with anyio.fail_after(PATIENCE):
                *_, last = [event async for event in read_events(stream)]
        assert last.retry is not None
