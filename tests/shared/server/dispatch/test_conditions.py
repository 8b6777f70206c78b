"""Conditions: log messages outside of calls, for clients of both eras."""

import pytest

from shared import Context
from tests.shared.server.peer import NEWEST_HANDSHAKE, STATELESS, server, talking
from tests.shared.transports.http.http_wire import events, served

LEVEL = "io.modelcontextprotocol/logLevel"
TOLD = {"level": "warning", "logger": "test", "data": "it rains"}
LOGGED = "notifications/message"


def quiet_server(**options):
    """A server that logs only for clients that set a level."""
    app = server(capabilities={"logging": {}}, **options)
    app.log_level = None
    return app


def told(peer):
    return [one["params"] for one in peer.others if one["method"] == LOGGED]


async def test_a_new_condition_is_sent_to_sessions_with_that_level():
    async with quiet_server().open() as running, talking(running) as peer:
        await peer.request("logging/setLevel", {"level": "warning"})
        running.conditions.begin("rain", "warning", "it rains")
        assert (await peer.other(LOGGED))["params"] == TOLD


async def test_setting_a_level_reports_current_conditions():
    async with quiet_server().open() as running, talking(running) as peer:
        running.conditions.begin("rain", "warning", "it rains")
        await peer.request("logging/setLevel", {"level": "info"})
        assert told(peer) == [TOLD]


async def test_stateless_clients_get_conditions_with_discover():
    async with quiet_server().open() as running, talking(running, STATELESS) as peer:
        running.conditions.begin("rain", "warning", "it rains")
        for meta in ({}, {LEVEL: "error"}):
            await peer.request("server/discover", **meta)
            assert told(peer) == []
        await peer.request("server/discover", **{LEVEL: "warning"})
        assert told(peer) == [TOLD]


@pytest.mark.parametrize("app", [quiet_server, server], ids=["no level was asked for", "no logging is declared"])
async def test_without_a_level_or_logging_no_condition_is_sent(app):
    async with app().open() as running, talking(running) as peer:
        await peer.request("ping")  # by now it is known that the handshake is over
        running.conditions.begin("rain", "emergency", "it rains")
        await peer.request("ping")
        assert peer.others == []


async def test_a_condition_below_the_level_is_not_sent():
    async with quiet_server().open() as running, talking(running) as peer:
        await peer.request("logging/setLevel", {"level": "error"})
        running.conditions.begin("rain", "warning", "it rains")
        await peer.request("ping")
        assert peer.others == []


async def test_a_condition_is_sent_once_and_not_after_its_end():
    async with quiet_server().open() as running, talking(running) as peer:
        await peer.request("logging/setLevel", {"level": "debug"})
        for text in ("it drips", "it drips", "it rains"):
            running.conditions.begin("rain", "warning", text)
        running.conditions.end("rain")
        await peer.request("logging/setLevel", {"level": "debug"})
        assert [one["data"] for one in told(peer)] == ["it drips", "it rains"]


async def test_a_call_logs_nothing_to_a_client_without_a_level():
    app = quiet_server()

    @app.tool()
    async def alarm(ctx: Context[None]) -> str:
        """Logs."""
        await ctx.log("emergency", "fire")
        return "done"

    async with talking(app, NEWEST_HANDSHAKE) as peer:
        await peer.call("alarm")
        assert peer.others == []


async def test_over_http_a_condition_arrives_on_the_session_stream():
    async with served(quiet_server()) as site:
        session = await site.initialize()
        headers = {**session, "Accept": "text/event-stream"}
        async with site.client.stream("GET", "/mcp", headers=headers) as answer:
            await site.post(site.message("logging/setLevel", {"level": "info"}), session)
            site.running.conditions.begin("rain", "warning", "it rains")
            assert (await anext(events(answer)))["params"] == TOLD


async def test_over_stateless_http_a_condition_arrives_before_the_answer():
    async with served(quiet_server()) as site:
        site.running.conditions.begin("rain", "warning", "it rains")
        async with site.stream(*site.stateless("server/discover", **{LEVEL: "info"})) as answer:
            said, answered = [message async for message in events(answer)]
        assert said["params"] == TOLD
        assert "result" in answered
        plain = await site.call("server/discover")
        assert plain.headers["content-type"] == "application/json"
