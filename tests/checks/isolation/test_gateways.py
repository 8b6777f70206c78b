"""State behind a gateway belongs to its principal: joined servers, and bridged third-party servers."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from servers.everything.server import app as everything
from servers.gateway.bridge import bridge
from servers.sqlite.server import app as sqlite
from servers.sqlite.settings import Settings
from shared import Resource
from shared.server.dispatch.context import Context
from tests.checks.isolation.parties import Party, parties, parties_at
from tests.checks.isolation.test_servers import asking_task, assert_own, both, settings, status
from tests.servers.gateway.bridge.upstreams import NEW, OLD, Behind
from tests.servers.gateway.joined.members import Door, joined
from tests.shared.client.small import Small
from tests.shared.transports.http.http_wire import Json

__all__ = ["settings"]

with_and_without_sessions = pytest.mark.parametrize("lasts", [True, False], ids=["session", "stateless"])
every_pair = pytest.mark.parametrize(
    ("lasts", "mode"), [(lasts, mode) for mode in (OLD, NEW) for lasts in (True, False)]
)
"""Whether the clients have sessions, and the era of the server behind the bridge."""


class Remembering(Small):
    """A server that keeps something in each of its sessions."""

    def __init__(self) -> None:
        super().__init__()
        self.app.tool()(self.note)
        self.kept: dict[int | None, list[str]] = {}

    async def note(self, ctx: Context[None], text: str) -> str:
        """Keep a text, and give all that was kept in this session."""
        kept = self.kept.setdefault(ctx.peer.session, [])
        kept.append(text)
        return " ".join(kept)


# Joined


@asynccontextmanager
async def joined_parties(settings: Settings) -> AsyncIterator[tuple[Party, Party]]:
    async with (
        joined(Door("sqlite", sqlite, settings), Door("everything", everything)) as running,
        parties_at(running) as both,
    ):
        yield both


@with_and_without_sessions
async def test_state_of_a_joined_server_belongs_to_the_principal(settings: Settings, lasts: bool) -> None:
    async with joined_parties(settings) as given:
        await assert_own(given, lasts)


@with_and_without_sessions
async def test_a_task_of_a_joined_server_belongs_to_the_principal(settings: Settings, lasts: bool) -> None:
    async with joined_parties(settings) as given:
        await assert_own_task(await both(given, lasts))


# Over a bridge


@every_pair
async def test_a_task_over_a_bridge_belongs_to_the_principal(lasts: bool, mode: str) -> None:
    async with Behind(everything, mode).serving() as upstream, parties(bridge(upstream)) as given:
        await assert_own_task(await both(given, lasts))


async def assert_own_task(given: Any) -> None:
    alice, bob = given
    id_ = await asking_task(alice)
    for method in ("tasks/get", "tasks/cancel", *(["tasks/result"] if bob.session else [])):
        assert (await bob.ask(method, {"taskId": id_}))["error"]["code"] == -32602
    assert await status(alice, id_) == "input_required"


@pytest.mark.parametrize("mode", [OLD, NEW])
async def test_a_state_over_a_bridge_belongs_to_the_principal(mode: str) -> None:
    async with Behind(everything, mode).serving() as upstream, parties(bridge(upstream)) as (alice, bob):
        params: Json = {"name": "test_input_required_result_elicitation", "arguments": {}}
        asked = (await alice.ask("tools/call", params))["result"]
        (key,) = asked["inputRequests"]
        brought = {key: {"action": "accept", "content": {"name": "Ada"}}}
        again = {**params, "inputResponses": brought, "requestState": asked["requestState"]}
        assert (await bob.ask("tools/call", again))["error"]["code"] == -32602
        assert "Ada" in str((await alice.ask("tools/call", again))["result"]["content"])


@with_and_without_sessions
async def test_each_principal_has_its_own_sessions_behind_a_bridge(lasts: bool) -> None:
    behind = Behind(Remembering().app, OLD)
    async with behind.serving() as upstream, parties(bridge(upstream)) as given:
        alice, bob = await both(given, lasts)
        assert await alice.text("note", text="hers") == "hers"
        assert await bob.text("note", text="his") == "his"
        assert await alice.text("note", text="again") == "hers again"
        another = await alice.opened()  # whose session is another one, though its principal is not
        assert await another.text("note", text="first") == "first"


class Recent(Small):
    """A server that lists to each client what that one has asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.app.tool()(self.visit)
        self.app.lists_resources(self.recent)
        self.seen: list[tuple[str, str]] = []

    async def visit(self, ctx: Context[None], uri: str) -> str:
        """Remember a URI."""
        self.seen.append((ctx.owner, uri))
        return uri

    async def recent(self, ctx: Context[None]) -> list[Resource]:
        """What the client has visited."""
        return [Resource(uri=uri, name=uri) for owner, uri in self.seen if owner == ctx.owner]


@with_and_without_sessions
async def test_lists_of_a_bridged_server_with_sessions_differ_by_principal(lasts: bool) -> None:
    async with Behind(Recent().app, OLD).serving() as upstream, parties(bridge(upstream)) as given:
        alice, bob = await both(given, lasts)
        await alice.text("visit", uri="own://alice")
        listed = [(await one.ask("resources/list"))["result"]["resources"] for one in (alice, bob)]
        assert ["own://alice" in str(resources) for resources in listed] == [True, False]
