"""/debug/state: connections, running and queued calls, and access to it."""

import json
from typing import Any

import anyio
import pytest

from shared.extensions.tasks import tasks
from shared.protocol.http.rules import HttpRequest
from shared.protocol.identity import Principal
from shared.protocol.types.tasks import TASKS
from shared.transports.http.app import state
from shared.transports.http.app.access_log import session_digest
from shared.transports.http.limits.endpoint_limits import ClientLimits, EndpointLimits
from tests.shared.transports.http.http_wire import Json, Site, listening, make_server, served

ADA = {"Authorization": "Bearer ada"}
ARGUMENT = "an-argument-of-the-test"


async def debug_state(site: Site, headers: Json | None = None) -> Any:
    answer = await site.client.get("/debug/state", headers=headers)
    assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store")
    assert "ada" not in answer.text.split()
    return answer.json()["servers"]["sample"]


async def test_state_shows_a_session_and_its_call() -> None:
    limits = EndpointLimits(clients=ClientLimits())
    async with served(tokens=("ada",), limits=limits) as site, anyio.create_task_group() as group:
        headers = await site.initialize(headers=ADA)
        await site.post(site.message("resources/subscribe", {"uri": "memo://one"}), headers)
        waiting = site.message("tools/call", {"name": "wait", "_meta": {"org.example/own": ARGUMENT}})
        group.start_soon(site.post, waiting, headers)
        await site.probe.started.wait()
        here = await debug_state(site, ADA)
        text = json.dumps(here)
        site.probe.release.set()
    digest, client = session_digest(headers["Mcp-Session-Id"]), {"name": "test", "version": "1"}
    (call,), (connection,) = here["calls"]["shown"], here["connections"]["shown"]
    principal = call["principal"]
    assert principal.startswith("token-")
    assert call.pop("seconds") >= 0
    assert call == {
        "method": "tools/call",
        "name": "wait",
        "session": digest,
        "protocol": "2025-11-25",
        "client": client,
        "principal": principal,
        "task": False,
    }
    assert connection == {
        "session": digest,
        "idle_seconds": 0.0,
        "streams": 1,
        "protocol": "2025-11-25",
        "client": client,
        "principal": principal,
        "address": "127.0.0.1",
        "calls": 1,
        "waiting_calls": 0,
        "waiting_messages": 0,
        "listen_streams": 0,
        "subscriptions": 1,
    }
    assert here["status"] == "ready"
    assert here["waiting"] == {"calls": 0, "messages": 0, "turns": 0, "brief_turns": 0}
    assert here["clients"] == {"shown": [{"client": principal, "calls": 1}], "more": 0}
    assert here["limits"]["sessions"] == {"used": 1, "of": 10_000}
    assert here["limits"]["subscriptions"]["used"] == 1
    for secret in (headers["Mcp-Session-Id"], ARGUMENT, "memo://one"):
        assert secret not in text


async def test_state_shows_a_stateless_call_and_queued_calls() -> None:
    app = make_server()
    app.limits = type(app.limits)(concurrent_calls=1)
    async with served(app) as site, anyio.create_task_group() as group:
        group.start_soon(site.call, "tools/call", {"name": "wait"})
        await site.probe.started.wait()
        (call,) = (await debug_state(site))["calls"]["shown"]
        assert (call["method"], call["protocol"], "session" in call) == ("tools/call", "2026-07-28", False)
        headers = await site.initialize()
        for _ in range(3):
            group.start_soon(site.post, site.message("tools/call", {"name": "wait"}), headers)
        while (await debug_state(site))["waiting"]["calls"] < 2:
            await anyio.lowlevel.checkpoint()
        site.probe.release.set()


async def test_state_shows_a_task_without_a_connection() -> None:
    able = {"io.modelcontextprotocol/clientCapabilities": {"extensions": {TASKS: {}}}}
    app = make_server()
    release = anyio.Event()

    @app.tool(task="required")
    async def last() -> str:
        """Last until it is released."""
        await release.wait()
        return "done"

    opened = app.open(extensions=[tasks(after_seconds=0.0)])
    async with opened as running, listening(running) as site:
        answer = await site.call("tools/call", {"name": "last"}, **able)
        assert answer.json()["result"]["resultType"] == "task"
        here = await debug_state(site)
        (call,) = here["calls"]["shown"]
        assert (call["name"], call["task"]) == ("last", True)
        assert here["limits"]["tasks"]["used"] == 1
        release.set()


async def test_state_counts_the_entries_that_it_omits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "MAX_ENTRIES", 2)
    async with served() as site:
        for _ in range(5):
            await site.initialize()
        connections = (await debug_state(site))["connections"]
        assert (len(connections["shown"]), connections["more"]) == (2, 3)


@pytest.mark.parametrize(
    ("options", "headers", "status"),
    [
        ({}, {}, 200),
        ({"tokens": ("ada",)}, ADA, 200),
        ({"tokens": ("ada",)}, {}, 401),
        ({"tokens": ("ada",)}, {"Authorization": "Bearer eve"}, 401),
        ({"host": "0.0.0.0"}, {}, 401),
        ({"host": "0.0.0.0", "tokens": ("ada",)}, ADA, 200),
        ({"trusted_proxies": ("127.0.0.1",)}, {}, 401),
        ({}, {"Origin": "https://example.com"}, 403),
        ({}, {"Host": "example.com"}, 403),
    ],
)
async def test_state_is_readable_only_by_authorized_requests(
    options: dict[str, Any], headers: Json, status: int
) -> None:
    async with served(**options) as site:
        assert (await site.client.get("/debug/state", headers=headers)).status_code == status


class Named:
    """Takes the token as the principal's name; `root` is an operator, and `all` has unlimited scopes."""

    async def authenticate(self, request: HttpRequest) -> Principal:
        """Returns the principal named by the token."""
        name = (request.headers.get("authorization") or "").removeprefix("Bearer ")
        scopes = {"root": frozenset({"operator"}), "all": None}.get(name, frozenset({"sample:write"}))
        return Principal(f"of {name}", name, scopes)


@pytest.mark.parametrize(
    ("name", "seen"), [("ada", ["of ada"]), ("eve", []), ("root", ["of ada"]), ("all", ["of ada"])]
)
async def test_state_shows_a_narrow_token_only_its_own_entries(name: str, seen: list[str]) -> None:
    limits = EndpointLimits(clients=ClientLimits())
    async with served(authenticator=Named(), limits=limits) as site, anyio.create_task_group() as group:
        headers = await site.initialize(headers=ADA)
        group.start_soon(site.post, site.message("tools/call", {"name": "wait"}), headers)
        await site.probe.started.wait()
        here = await debug_state(site, {"Authorization": f"Bearer {name}"})
        site.probe.release.set()
    assert [one["principal"] for one in here["connections"]["shown"]] == seen
    assert [one["principal"] for one in here["calls"]["shown"]] == seen
    assert [one["client"] for one in here["clients"]["shown"]] == seen


async def test_state_refuses_post() -> None:
    async with served() as site:
        assert (await site.client.post("/debug/state")).status_code == 405
