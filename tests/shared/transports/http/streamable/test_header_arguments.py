"""Tool arguments repeated in headers, for tools that a server lists on behalf of others, as a gateway does."""

from typing import Any

import pytest
from pydantic import BaseModel

from shared import Implementation, Server
from shared.auth.policy import Entitlement, Policy, Rules
from shared.extensions.access import access
from shared.extensions.narrowing import narrowing
from shared.protocol.http.rules import HttpRequest
from shared.protocol.identity import Principal
from shared.server.extension import Extension
from shared.transports.http.streamable import header_arguments
from shared.transports.http.streamable.header_arguments import HeaderArguments
from tests.shared.transports.http.http_wire import Json, listening, served

REGION = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}


def tool(name: str, schema: Json = REGION) -> Json:
    return {"name": name, "inputSchema": schema}


def gateway() -> Server[Any]:
    """Makes a server that lists and calls the tools of another server."""

    async def answer(_running: object, context: Any, _params: object) -> Json:
        if context.call.method.name == "tools/list":
            return {"tools": [tool("routed")], "ttlMs": 0, "cacheScope": "public"}
        return {"content": [{"type": "text", "text": "served"}]}

    def around(method: Any, handler: Any) -> Any:
        return answer if method.name in ("tools/list", "tools/call") else handler

    forwarding = Extension[Any]("forwarding", around=around)
    return Server(Implementation(name="gateway", version="1"), capabilities={"tools": {}}, extensions=[forwarding])


@pytest.mark.parametrize(("header", "status"), [("eu", 200), ("us", 400), (None, 400)])
async def test_header_arguments_of_a_listed_tool_are_checked(header: str | None, status: int) -> None:
    async with served(gateway()) as site:
        assert (await site.call("tools/list")).status_code == 200
        message, headers = site.stateless("tools/call", {"name": "routed", "arguments": {"region": "eu"}})
        answer = await site.post(message, {**headers, "Mcp-Param-Region": header})
        assert answer.status_code == status


async def test_header_arguments_of_an_unlisted_tool_are_not_checked() -> None:
    async with served(gateway()) as site:
        message, headers = site.stateless("tools/call", {"name": "routed", "arguments": {"region": "eu"}})
        assert (await site.post(message, headers)).status_code == 200


async def test_a_later_list_replaces_the_known_marks() -> None:
    async with gateway().open() as running:
        known = HeaderArguments(running)
        known.learn({"tools": [tool("routed"), tool("other")]})
        known.learn({"tools": [tool("routed", {"type": "object"})]})
        assert (len(known.find("routed")), len(known.find("other"))) == (0, 1)


async def test_the_number_of_known_tools_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(header_arguments, "MAX_LISTED", 2)
    async with gateway().open() as running:
        known = HeaderArguments(running)
        known.learn({"tools": [tool("a"), tool("b"), tool("c")]})
        assert [len(known.find(name)) for name in "abc"] == [0, 1, 1]


@pytest.mark.parametrize("tools", [None, "routed", [None], [{}], [{"name": 1}], [{"name": "a", "inputSchema": []}]])
async def test_an_invalid_tool_list_is_ignored(tools: Any) -> None:
    async with gateway().open() as running:
        known = HeaderArguments(running)
        known.learn({"tools": tools})
        assert known.find("a") == ()


def region_server() -> Server[Any]:
    app = Server[Any](Implementation(name="regions", version="1"))

    @app.tool(input_schema=REGION)
    async def routed(region: str) -> str:
        """Be routed."""
        return region

    return app


@pytest.mark.parametrize(("name", "count"), [("ada", 0), ("root", 1)])
async def test_a_hidden_tool_has_no_header_arguments(name: str, count: int) -> None:
    rules = Rules(principals={"ada": Entitlement((frozenset({"regions:read"}),))})
    async with region_server().open(extensions=[access(Policy("regions", rules))]) as running:
        assert len(HeaderArguments(running).find("routed", Principal("key", name))) == count


class Named:
    """Trusts the name in a header."""

    async def authenticate(self, request: HttpRequest) -> Principal:
        name = request.headers.get("user") or ""
        return Principal(f"key of {name}", name)


class Settings(BaseModel):
    routes: bool = False


async def test_header_arguments_follow_the_settings_of_the_principal() -> None:
    app = Server[Any](Implementation(name="regions", version="1"), settings=Settings)

    @app.tool(input_schema=REGION, unavailable=lambda settings: None if settings.routes else "off")
    async def routed(region: str) -> str:
        """Be routed."""
        return region

    async with (
        app.open(extensions=[narrowing({"ada": Settings(routes=True)})]) as running,
        listening(running, authenticator=Named()) as site,
    ):
        known = HeaderArguments(running)
        assert [len(known.find("routed", Principal("key", name))) for name in ("ada", "bob")] == [1, 0]
        message, headers = site.stateless("tools/call", {"name": "routed", "arguments": {"region": "eu"}})
        for region, status in (("us", 400), ("eu", 200)):
            answer = await site.post(message, {**headers, "Mcp-Param-Region": region, "User": "ada"})
            assert answer.status_code == status


async def test_header_checks_do_not_reveal_a_hidden_tool() -> None:
    rules = Rules(principals={"*": Entitlement((frozenset({"regions:read"}),))})
    async with (
        region_server().open(extensions=[access(Policy("regions", rules))]) as running,
        listening(running) as site,
    ):
        answers = []
        for name in ("routed", "absent"):
            message, headers = site.stateless("tools/call", {"name": name, "arguments": {"region": "eu"}})
            answer = await site.post(message, {**headers, "Mcp-Param-Region": "us"})
            answers.append((answer.status_code, answer.json()["error"]["message"].replace(name, "NAME")))
    assert answers[0] == answers[1]
