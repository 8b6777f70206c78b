"""Credentials of a client: asked for with each HTTP request, whatever the transport, and shown each answer."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from shared.client.auth import AuthorizationCode, OAuth
from shared.client.client import Client
from shared.client.connect import LOGIN_SECONDS, _patient, connect_http, connect_sse, connect_websocket
from shared.client.options import ClientOptions
from shared.errors import AuthError, LoginRequired, PeerError
from shared.transports.http.client_authorized import MAX_SENT
from tests.shared.client.auth.world import Person
from tests.shared.client.small import Small, listening, text_of

WAYS = {
    "stateless": (connect_http, "http://{}/mcp", "stateless"),
    "handshake": (connect_http, "http://{}/mcp", "handshake"),
    "sse": (connect_sse, "http://{}/sse", "handshake"),
    "websocket": (connect_websocket, "ws://{}/mcp", "auto"),
}


class Renewed:
    """Has an old token until a server has refused it."""

    def __init__(self, *tokens: str, error: AuthError | None = None) -> None:
        self.tokens = list(tokens)
        self.error = error
        self.seen: list[tuple[str, str, int]] = []

    async def headers(self, method: str, url: str) -> Mapping[str, str]:
        if self.error is not None:
            raise self.error
        return {"authorization": f"Bearer {self.tokens[0]}"}

    async def answered(self, method: str, url: str, status: int, headers: Mapping[str, str]) -> bool:
        self.seen.append((method, url, status))
        if status != 401:
            return False
        assert headers["WWW-Authenticate"] == headers["www-authenticate"]
        if len(self.tokens) > 1:
            del self.tokens[0]
        return True


Connecting = Callable[[Renewed], AbstractAsyncContextManager[Client]]


@asynccontextmanager
async def served(way: str) -> AsyncIterator[tuple[Connecting, str]]:
    """What connects to a server that knows one token, and the URL that a token is for."""
    connect, url, mode = WAYS[way]
    async with listening(Small(), "new") as (address, _):
        place = url.format(address)
        yield lambda auth: connect(place, ClientOptions(mode=mode), auth=auth), place.replace("ws:", "http:")


ways = pytest.mark.parametrize("way", WAYS)


@ways
async def test_a_request_is_sent_again_with_other_credentials(way: str) -> None:
    auth = Renewed("old", "new")
    async with served(way) as (connect, url), connect(auth) as client:
        assert text_of((await client.call_tool("add", {"a": 1, "b": 2})).to_wire()) == "3"
    assert auth.seen[0][1:] == (url, 401)
    assert [status for *_, status in auth.seen].count(401) == 1


@pytest.mark.parametrize(("way", "status"), [("sse", 200), ("websocket", 101)])
async def test_a_token_that_opens_a_stream_is_seen_to_be_accepted(way: str, status: int) -> None:
    auth = Renewed("new")
    async with served(way) as (connect, url), connect(auth):
        assert auth.seen[0] == ("GET", url, status)


@ways
async def test_it_is_not_sent_for_ever(way: str) -> None:
    auth = Renewed("old")
    async with served(way) as (connect, _):
        with pytest.raises(PeerError) as refused:
            async with connect(auth):
                pass
    assert refused.value.code == 401
    assert len(auth.seen) == MAX_SENT


@ways
@pytest.mark.parametrize("kind", [AuthError, LoginRequired])
async def test_who_has_none_is_told_so(way: str, kind: type[AuthError]) -> None:
    async with served(way) as (connect, _):
        with pytest.raises(kind, match="run login") as found:
            async with connect(Renewed(error=kind("run login"))):
                pass
    assert type(found.value) is kind


class Slow(Renewed):
    """Has somebody log in first, who takes longer than a server that answers nothing is waited for."""

    waiting = 0
    may_wait_for_person = True

    async def headers(self, method: str, url: str) -> Mapping[str, str]:
        if not self.seen:
            self.waiting += 1
            logged_in = asyncio.Event()
            asyncio.get_running_loop().call_later(0.2, logged_in.set)
            await logged_in.wait()
        return await super().headers(method, url)


async def test_a_login_is_waited_for() -> None:
    auth, options = Slow("new"), ClientOptions(probe_seconds=0.01)
    async with (
        listening(Small(), "new") as (address, _),
        connect_http(f"http://{address}/mcp", options, auth=auth) as client,
    ):
        assert await client.list_tools()
    assert auth.waiting == 1


@pytest.mark.parametrize(("redirect", "waits"), [(Person(), True), (None, False)])
def test_only_where_somebody_is_there_a_login_is_waited_for(redirect: Person | None, waits: bool) -> None:
    options = ClientOptions(probe_seconds=1, opening_seconds=2)
    patient = _patient(options, OAuth("http://127.0.0.1/mcp", AuthorizationCode(redirect)))
    assert (patient.probe_seconds, patient.opening_seconds) == ((LOGIN_SECONDS,) * 2 if waits else (1, 2))
