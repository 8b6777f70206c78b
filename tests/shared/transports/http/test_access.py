"""How a token that does not allow enough is answered over HTTP."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from shared.auth.policy import Policy
from shared.extensions.access import access
from shared.extensions.dialects import DIALECTS
from shared.protocol.http.rules import HttpRequest
from shared.protocol.identity import Principal
from shared.transports.http.limits import EndpointLimits
from tests.shared.transports.http.http_wire import Site, events, listening, make_server
from tests.shared.transports.http.web_socket import web_socket

CALL = {"name": "echo", "arguments": {"text": "x"}}


class Scoped:
    """Knows everybody, with the scopes that a header names."""

    async def authenticate(self, request: HttpRequest) -> Principal | None:
        return Principal("ada", "ada", frozenset((request.headers.get("x-scopes") or "").split()))


@asynccontextmanager
async def guarded() -> AsyncIterator[Site]:
    limits = EndpointLimits(dialects=True)
    async with (
        make_server().open(extensions=[DIALECTS, access(Policy("sample"))]) as running,
        listening(running, authenticator=Scoped(), limits=limits) as site,
    ):
        yield site


def challenge_of(answer: Any) -> str:
    assert answer.status_code == 403, answer.text
    assert answer.json()["error"]["data"] == {"scopes": ["sample:write"]}
    challenge: str = answer.headers["www-authenticate"]
    return challenge


def names_scope(challenge: str) -> bool:
    return challenge.startswith('Bearer error="insufficient_scope"') and 'scope="sample:write"' in challenge


async def test_a_request_without_a_session() -> None:
    async with guarded() as site:
        assert names_scope(challenge_of(await site.call("tools/call", CALL)))


async def test_a_request_of_a_session() -> None:
    async with guarded() as site:
        session = await site.initialize()
        assert names_scope(challenge_of(await site.post(site.message("tools/call", CALL), session)))


async def test_a_newer_token_allows_more_in_the_same_session() -> None:
    async with guarded() as site:
        session = await site.initialize()
        wider = {**session, "X-Scopes": "sample:write"}
        assert (await site.post(site.message("tools/call", CALL), wider)).status_code == 200
        assert (await site.post(site.message("tools/call", CALL), session)).status_code == 403


async def test_a_dialect() -> None:
    async with guarded() as site:
        message = {"jsonrpc": "2.0", "id": 1, "method": "mcp/tool/execute"}
        message["params"] = {"toolId": "sample/echo", "inputs": {"text": "x"}}
        assert (await site.post(message)).status_code == 403


async def test_a_websocket_is_told_in_the_answer() -> None:
    async with guarded() as site, web_socket(site) as socket:
        await socket.initialize()
        answer = await socket.request("tools/call", CALL)
        assert answer["error"]["data"] == {"scopes": ["sample:write"]}


async def test_a_batch_is_told_in_the_answers() -> None:
    async with guarded() as site:
        session = await site.initialize("2025-03-26")
        batch = [site.message("ping"), site.message("tools/call", CALL)]
        async with site.stream(batch, session) as answer:
            assert answer.status_code == 200
            if answer.headers["content-type"].startswith("application/json"):
                told = (await answer.aread()) and answer.json()
            else:
                told = [one async for one in events(answer)]
        assert [one["error"]["data"] for one in told if "error" in one] == [{"scopes": ["sample:write"]}]
