"""The limit of text follows the host of the client, and is declared to hosts that read it."""

import pytest

from shared import Context
from shared.server.dispatch.hosts import HOSTS, SIZE_KEY, find_host
from shared.server.dispatch.limits import CallLimits
from shared.server.server import Server
from tests.shared.server.peer import ERAS, server, talking
from tests.wire import CLIENT_INFO

EVERY_ERA = pytest.mark.parametrize("era", ERAS)


def measuring(budget: CallLimits | None = None) -> Server:
    """A server whose tool returns the limit of text."""
    app = server()
    app.budget = budget or app.budget

    @app.tool()
    async def measure(ctx: Context) -> str:
        """Measure."""
        return str(ctx.budget.page_bytes)

    return app


async def measured(app: Server, era: str) -> int:
    async with talking(app, era) as peer:
        answer = await peer.request("tools/call", {"name": "measure", "arguments": {}})
    return int(answer["result"]["content"][0]["text"])


@EVERY_ERA
@pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.name)
async def test_text_is_limited_to_what_the_host_shows(host, era: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(CLIENT_INFO, "name", f"{host.name}-1")
    assert await measured(measuring(), era) == host.text_bytes


async def test_an_unknown_host_gets_the_configured_limit():
    assert await measured(measuring(CallLimits(result_bytes=70_000)), ERAS[0]) == 70_000


async def test_the_operators_limit_overrides_that_of_the_host(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(CLIENT_INFO, "name", "codex-mcp-client")
    assert await measured(measuring(CallLimits(text_bytes=50_000)), ERAS[0]) == 50_000
    assert await measured(measuring(CallLimits(text_bytes=50_000, result_bytes=2_000)), ERAS[0]) == 2_000


@pytest.mark.parametrize("info", [None, {}, {"name": 3}, {"name": ["codex-mcp-client"]}, {"name": "my codex"}])
def test_odd_client_names_match_no_host(info):
    assert find_host(info) is None


@EVERY_ERA
async def test_result_sizes_are_declared_only_to_hosts_that_read_them(era: str, monkeypatch: pytest.MonkeyPatch):
    for name, told in (("claude-code", {SIZE_KEY: 200_000}), ("codex-mcp-client", None)):
        monkeypatch.setitem(CLIENT_INFO, "name", name)
        async with talking(measuring(), era) as peer:
            (tool,) = (await peer.request("tools/list"))["result"]["tools"]
        assert tool.get("_meta") == told


def test_each_host_has_a_source_and_a_date():
    assert all(host.source and len(host.date) == 10 for host in HOSTS)
