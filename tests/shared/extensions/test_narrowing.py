"""Principals with their own run of the server: which run they get, and what the runs share."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anyio
from pydantic import BaseModel

from shared import Context, Implementation, Server
from shared.errors import LimitExceeded
from shared.extensions.narrowing import narrowing
from shared.protocol.http.rules import HttpRequest
from shared.protocol.identity import Principal
from shared.server.dispatch.limits import Limits
from shared.server.run import Run
from shared.server.running import Opening
from shared.stores.memory import Stores
from shared.telemetry.metrics import Metrics
from shared.transports.http.limits.endpoint_limits import ClientLimits
from shared.transports.http.limits.rate_limits import ClientQuotas
from tests.quiet import quiet
from tests.shared.server.peer import Peer, talking
from tests.shared.transports.http.http_wire import listening


class Settings(BaseModel):
    notes: str = "all"


def app(seen: list[str] | None = None) -> Server[str]:
    served = Server[str](Implementation(name="notes", version="1"), settings=Settings)

    @served.lifespan
    async def living(opening: Opening) -> AsyncIterator[str]:
        if seen is not None:
            seen.append(f"+{opening.settings.notes}")
        yield opening.settings.notes
        if seen is not None:
            seen.append(f"-{opening.settings.notes}")

    @served.tool()
    async def whose(ctx: Context[str]) -> str:
        """Say whose notes these are."""
        return ctx.state

    @served.tool()
    async def keep(ctx: Context[str], text: str) -> None:
        """Wait until cancelled."""
        await anyio.sleep_forever()

    @served.on_subscribe
    async def subscribe(ctx: Context[str], uri: str) -> str:
        return uri

    @served.resource("note://one")
    async def note(ctx: Context[str]) -> str:
        return ctx.state

    @served.on_ready
    async def ready(running: Run[str]) -> str | None:
        return None

    return served


NARROWED = {"ada": Settings(notes="ada's"), "root": None, "*": Settings(notes="few")}


@asynccontextmanager
async def opened(settings: dict[str, Settings | None] = NARROWED, **options: Any) -> AsyncIterator[Run[str]]:
    async with app().open(extensions=[narrowing(settings)], **options) as running:
        yield running


@asynccontextmanager
async def as_(running: Run[str], *names: str | None) -> AsyncIterator[list[Peer]]:
    """Concurrent clients of these principals."""
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(
                talking(running, principal=None if name is None else Principal(f"key of {name}", name))
            )
            for name in names
        ]


async def test_each_principal_is_served_by_its_own_run() -> None:
    async with opened() as running, as_(running, "ada", "bob", "root", None, "", "*") as peers:
        texts = [await peer.text("whose") for peer in peers]
    assert texts == ["ada's", "few", "all", "few", "few", "few"]


async def test_without_a_default_entry_other_principals_have_everything() -> None:
    async with opened({"ada": Settings(notes="ada's")}) as running, as_(running, "ada", "bob", None) as peers:
        assert [await peer.text("whose") for peer in peers] == ["ada's", "all", "all"]


async def test_narrowed_runs_open_and_close_with_the_main_run() -> None:
    seen: list[str] = []
    async with app(seen).open(extensions=[narrowing(NARROWED)]):
        assert seen == ["+all", "+ada's", "+few"]
    assert seen[3:] == ["-few", "-ada's", "-all"]


async def test_narrowed_runs_stop_with_the_main_run() -> None:
    stopped: list[str] = []
    async with opened() as running:
        running.parts.for_name("ada").hooks.stoppers.append(lambda: stopped.append("ada"))
        running.stop()
        assert stopped == ["ada"]


async def test_changes_of_a_run_are_not_sent_to_other_principals() -> None:
    async with opened() as running, as_(running, "ada", "bob") as (ada, bob):
        for peer in (ada, bob):
            await peer.request("resources/subscribe", {"uri": "note://one"})
        running.parts.for_name("ada").changes.resource("note://one")
        running.parts.for_name("ada").changes.tools()
        assert (await ada.other("notifications/resources/updated"))["params"] == {"uri": "note://one"}
        await bob.text("whose")
        assert bob.others == []
        assert sum(one.changes.subscribed_resources for one in running.parts.all) == 2


class Named:
    """Trusts the name in a header."""

    async def authenticate(self, request: HttpRequest) -> Principal:
        name = request.headers.get("user") or ""
        return Principal(f"key of {name}", name)


async def test_a_session_over_http_is_served_by_the_run_of_its_principal() -> None:
    stores = Stores()
    async with (
        opened(stores=stores) as one,
        opened(stores=stores) as other,
        listening(one, authenticator=Named()) as here,
        listening(other, authenticator=Named()) as there,
    ):
        session, ada = await here.initialize(headers={"User": "ada"}), one.parts.for_name("ada")
        answer = await here.post(here.message("tools/call", {"name": "whose"}), session)
        assert answer.json()["result"]["content"] == [{"type": "text", "text": "ada's"}]
        subscribe = here.message("resources/subscribe", {"uri": "note://one"})
        await here.post(subscribe, session)
        assert ada.changes.subscribed_resources == 1
        await there.post({**subscribe, "id": "again"}, session)
        await quiet()
        # Only the replica that received the last request reports the changes.
        assert ada.changes.subscribed_resources == 0


async def test_each_run_has_its_own_signing_key() -> None:
    async with opened() as running:
        data = "position"
        signed = [running.parts.for_name(name).signer.sign("cursor:tools", data) for name in ("ada", "bob", "root")]
    assert len(set(signed)) == 3


async def test_replicas_give_each_principal_the_same_run() -> None:
    stores = Stores()
    async with opened(stores=stores) as one, opened(stores=stores) as other:
        assert one.parts.for_name("ada").replication.replica is one.replication.replica
        assert other.parts.for_name("ada").replication.replica is other.replication.replica
        async with as_(one, "ada") as (peer,):
            assert await peer.text("whose") == "ada's"


async def test_changes_at_another_replica_reach_every_principal() -> None:
    stores = Stores()
    async with (
        opened(stores=stores) as one,
        opened(stores=stores) as other,
        as_(other, "ada", "bob", "root") as peers,
    ):
        for peer in peers:
            await peer.request("resources/subscribe", {"uri": "note://one"})
        one.changes.resource("note://one")
        for peer in peers:
            assert (await peer.other("notifications/resources/updated"))["params"] == {"uri": "note://one"}


async def test_a_trace_sees_the_messages_of_all_runs() -> None:
    class Trace:
        count = 0

        def on_received(self, message: Any) -> None:
            self.count += 1

        def on_sent(self, outgoing: Any) -> None:
            pass

    trace = Trace()
    async with opened() as running:
        running.hooks.trace = trace
        async with as_(running, "ada"):
            assert trace.count


async def test_each_run_has_the_endpoints_of_the_main_run() -> None:
    async with opened() as running:
        running.hooks.endpoints = [("127.0.0.1", 80)]
        async with as_(running, "ada"):
            assert Opening(running.parts.for_name("ada")).endpoints == [("127.0.0.1", 80)]


async def test_metrics_count_the_calls_of_all_runs() -> None:
    metrics = Metrics()
    async with opened() as running:
        metrics.attach(running)
        async with as_(running, "ada", "root") as peers:
            for peer in peers:
                await peer.text("whose")
    assert [series.requests for labels, series in metrics if labels.tool == "whose"] == [2]


async def test_each_run_applies_the_limit_of_calls_and_reports_refusals() -> None:
    refused: list[LimitExceeded] = []
    async with opened() as running:
        running.hooks.quota, running.hooks.on_refused = ClientQuotas(ClientLimits(calls=0)), refused.append
        async with as_(running, "ada", "root") as peers:
            errors = [(await peer.call("whose"))["error"]["message"].partition(";")[0] for peer in peers]
    assert errors == ["too many of your calls are in progress"] * 2
    assert [error.data for error in refused] == [{"limit": "calls", "retryAfter": 1}] * 2


async def test_the_runs_of_principals_share_the_memory_of_calls() -> None:
    limits = Limits(call_bytes=300_000, drain_seconds=0)
    async with opened(limits=limits) as running, as_(running, "ada", "root") as (ada, root):
        await ada.start("keep", text="x" * 200_000)
        error = (await root.call("keep", text="x" * 200_000))["error"]
    assert error["data"] == {"limit": "memory", "retryAfter": 1}


async def test_the_blobs_of_a_run_are_separate() -> None:
    async with app().open(extensions=[narrowing({"ada": Settings()})], stores=Stores()) as running:
        mine, hers = (Opening(one).blobs for one in running.parts.all)
        assert mine is not None
        assert hers is not None
        await mine.put(b"mine", 60.0, "a")
        assert (await mine.get("a"), await hers.get("a")) == (b"mine", None)
        assert [await one.claim("b", 60.0) for one in (mine, hers, mine)] == [True, True, False]
        name = await hers.put(b"hers", 60.0)
        assert (await mine.get(name), await hers.get(name)) == (None, b"hers")
