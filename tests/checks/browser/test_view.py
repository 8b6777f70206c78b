"""The view's side of MCP Apps, in a frame of a host: handshake, requests in both directions, and themes."""

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, expect

from servers.common.web import pages
from tests.checks.browser.app_host import AppHost, open_app
from tests.checks.browser.site import Site

WEB = Path(pages.__file__).parent
SCRIPT = """
import { h } from "%(web)s/dom.js";
import { connectHost } from "%(web)s/view.js";

const out = document.getElementById("out");
const say = (kind) => (value) => out.append(h("li", {}, `${kind} ${JSON.stringify(value)}`));
async function start() {
  const handlers = {};
  for (const name of ["Input", "PartialInput", "Result", "Cancelled", "Context"]) handlers[`on${name}`] = say(name);
  const onTeardown = async () => say("Teardown")(1);
  globalThis.host = await connectHost({ name: "probe", version: "2", ...handlers, onTeardown });
  say("Ready")(host.info);
}
start();
"""

OpenProbe = Callable[..., Awaitable[AppHost]]


@pytest.fixture
def open_probe(page: Page, site: Site, tmp_path: Path) -> OpenProbe:
    """Opens an app that lists what its handlers get, and has its host as `host`."""
    web = os.path.relpath(WEB, tmp_path)
    (tmp_path / "probe.js").write_text(SCRIPT % {"web": web})
    (tmp_path / "probe.html").write_text(
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Probe</title>'
        f'<link rel="stylesheet" href="{web}/theme.css"></head><body><ul id="out"></ul>'
        '<script type="module" src="probe.js"></script></body></html>'
    )

    async def opened(**how: Any) -> AppHost:
        host = await open_app(page, site, tmp_path / "probe.html", **how)
        await expect(host.app.get_by_text("Ready")).to_be_visible()
        return host

    return opened


async def in_app(host: AppHost, script: str) -> Any:
    """Returns the value of `script` in the app."""
    return await host.app.locator("body").evaluate(f"async () => {script}")


async def test_a_view_initializes_with_the_protocol_version(open_probe: OpenProbe) -> None:
    host = await open_probe()
    asked = await host.received(method="ui/initialize")
    assert asked["params"] == {
        "protocolVersion": "2026-01-26",
        "appInfo": {"name": "probe", "version": "2"},
        "appCapabilities": {"availableDisplayModes": ["inline", "fullscreen"]},
    }
    await expect(host.app.get_by_text("test-host")).to_be_visible()


@pytest.mark.parametrize(
    ("method", "params", "shown"),
    [
        ("ui/notifications/tool-input-partial", {"arguments": {"a": 1}}, 'PartialInput {"a":1}'),
        ("ui/notifications/tool-input", {"arguments": {"a": 2}}, 'Input {"a":2}'),
        ("ui/notifications/tool-result", {"content": []}, 'Result {"content":[]}'),
        ("ui/notifications/tool-cancelled", {"reason": "enough"}, 'Cancelled "enough"'),
        ("ui/notifications/host-context-changed", {"locale": "de"}, 'Context {"locale":"de"}'),
    ],
)
async def test_notifications_of_the_host_reach_their_handlers(
    method: str, params: dict[str, Any], shown: str, open_probe: OpenProbe
) -> None:
    host = await open_probe()
    await host.send(method, params)
    await expect(host.app.get_by_text(shown, exact=True)).to_be_visible()


async def test_a_ping_is_answered(open_probe: OpenProbe) -> None:
    host = await open_probe()
    await host.send("ping", {}, request="p")
    assert (await host.received(id="p"))["result"] == {}


async def test_an_unknown_request_is_refused(open_probe: OpenProbe) -> None:
    host = await open_probe()
    await host.send("tools/list", {}, request="t")
    assert (await host.received(id="t"))["error"] == {"code": -32601, "message": "Method not found: tools/list"}


@pytest.mark.parametrize(
    ("opened_for", "called"),
    [("read", "add"), ("files__read", "files__add"), ("my_own__read", "add"), ("files__add", "files__add")],
)
async def test_a_call_behind_a_gateway_reaches_the_server_of_the_view(
    opened_for: str, called: str, open_probe: OpenProbe
) -> None:
    async def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
        return {"result": {"content": [], "structuredContent": params}}

    host = await open_probe(answer=answer, context={"toolInfo": {"tool": {"name": opened_for}}})
    for name in ("add", called):
        asked = await in_app(host, f"(await host.callTool('{name}', {{}})).structuredContent.name")
        assert asked == called


async def test_a_call_returns_the_result_of_the_server(open_probe: OpenProbe) -> None:
    async def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
        return {"result": {"content": [], "structuredContent": {"asked": [method, params]}}}

    host = await open_probe(answer=answer)
    result = await in_app(host, "host.callTool('add', {a: 1})")
    assert result["structuredContent"] == {"asked": ["tools/call", {"name": "add", "arguments": {"a": 1}}]}


async def test_an_error_of_the_host_is_thrown(open_probe: OpenProbe) -> None:
    host = await open_probe()
    said = await in_app(host, "host.readResource('x:y').catch((e) => `${e.name} ${e.code} ${e.message}`)")
    assert said == "HostError -32601 this host does not do resources/read"


async def test_an_action_refused_by_the_host_is_an_error(open_probe: OpenProbe) -> None:
    async def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
        return {"result": {"isError": True}}

    host = await open_probe(answer=answer)
    assert "did not take the message" in await in_app(host, "host.sendMessage('hello').catch((e) => e.message)")


async def test_only_web_addresses_are_opened(open_probe: OpenProbe) -> None:
    async def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
        return {"result": {}}

    host = await open_probe(answer=answer)
    assert "not an address of the web" in await in_app(
        host, "host.openLink('javascript:canary()').catch((e) => e.message)"
    )
    await in_app(host, "host.openLink('https://example.com/')")
    assert await host.all_received("ui/open-link") == [{"url": "https://example.com/"}]


async def test_teardown_is_answered_and_rejects_open_calls(open_probe: OpenProbe) -> None:
    async def never(method: str, params: dict[str, Any]) -> None:
        return None

    host = await open_probe(answer=never)
    await in_app(host, "{ globalThis.open = host.callTool('slow').catch((e) => e.message); }")
    await host.received(method="tools/call")
    await host.send("ui/resource-teardown", {}, request="end")
    assert (await host.received(id="end"))["result"] == {}
    assert await in_app(host, "open") == "The host has closed this view."
    assert await in_app(host, "host.callTool('later').catch((e) => e.message)") == "The host has closed this view."
    await expect(host.app.get_by_text("Teardown 1")).to_be_visible()


async def test_only_messages_of_the_parent_window_are_handled(open_probe: OpenProbe) -> None:
    host = await open_probe()
    forged = "{ jsonrpc: '2.0', method: 'ui/notifications/tool-result', params: { from: 'inside' } }"
    await in_app(host, f"new Promise((done) => {{ window.postMessage({forged}, '*'); setTimeout(done); }})")
    await host.send("ui/notifications/tool-result", {"from": "host"})
    await expect(host.app.get_by_text("Result")).to_have_text(['Result {"from":"host"}'])


async def test_messages_outside_the_protocol_are_ignored(open_probe: OpenProbe) -> None:
    host = await open_probe()
    nonsense = "[null, 'text', 7, {}, { jsonrpc: '1.0' }, { jsonrpc: '2.0', id: 99, result: 1 }]"
    await host.page.evaluate(f"{nonsense}.forEach((one) => frame.contentWindow.postMessage(one, '*'))")
    await host.send("ping", {}, request="p")
    assert (await host.received(id="p"))["result"] == {}


async def test_size_changes_are_sent_to_the_host(open_probe: OpenProbe) -> None:
    host = await open_probe()
    before = (await host.received(method="ui/notifications/size-changed"))["params"]["height"]
    await in_app(host, "{ document.body.append(Object.assign(document.createElement('hr'), { id: 'tall' })); }")
    await host.app.locator("#tall").evaluate("(one) => one.style.setProperty('height', '900px')")
    await host.page.wait_for_function(f"received.at(-1).params?.height >= {before} + 900")
    assert (await host.received(method="ui/notifications/size-changed"))["params"]["width"] == 1280


@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_the_theme_of_the_host_is_applied(theme: str, open_probe: OpenProbe) -> None:
    host = await open_probe(context={"theme": theme})
    assert await in_app(host, "getComputedStyle(document.documentElement).colorScheme") == theme


async def test_a_context_change_keeps_the_other_fields(open_probe: OpenProbe) -> None:
    host = await open_probe(context={"theme": "dark", "locale": "de"})
    await host.send("ui/notifications/host-context-changed", {"theme": "light"})
    await expect(host.app.get_by_text('Context {"theme":"light","locale":"de"}')).to_be_visible()
    assert await in_app(host, "getComputedStyle(document.documentElement).colorScheme") == "light"


async def test_style_variables_of_the_host_are_applied_unless_they_load_resources(open_probe: OpenProbe) -> None:
    variables = {
        "--color-background-primary": "light-dark(#ffffff, #171717)",
        "--color-text-primary": "url(https://example.com/x)",
        "--color-border-primary": "red; background: blue",
        "background": "red",
        "--Upper": "red",
    }
    host = await open_probe(context={"styles": {"variables": variables}})
    taken = await in_app(host, "[...document.documentElement.style]")
    assert taken == ["--color-background-primary"]


async def test_a_page_that_fills_its_frame_is_notified(open_probe: OpenProbe) -> None:
    host = await open_probe(context={"containerDimensions": {"height": 400, "width": 600}})
    await expect(host.app.locator("html")).to_have_attribute("data-height", "fixed")
    assert await in_app(host, "document.documentElement.style.getPropertyValue('--host-height')") == "400px"


async def test_a_page_outside_a_host_shows_a_notice(
    page: Page, site: Site, problems: list[str], tmp_path: Path
) -> None:
    (tmp_path / "alone.js").write_text(
        f'import {{ connectHost }} from "{os.path.relpath(WEB, tmp_path)}/view.js";\n'
        'connectHost({}).catch((error) => document.querySelector("main").append(error.message));\n'
    )
    (tmp_path / "alone.html").write_text(
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Alone</title></head>'
        '<body><main></main><script type="module" src="alone.js"></script></body></html>'
    )
    await page.goto(site.add(pages.assemble(tmp_path / "alone.html")))
    await expect(page.get_by_role("main")).to_contain_text("only inside a host")
