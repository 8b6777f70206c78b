"""The workbench as it is served, and `mcp-server-bundle open`; tests/checks/browser tests it in a browser."""

import json
import re
from pathlib import Path

import httpx
import pytest

from servers.bundle.workbench.front import INDEX, Workbench
from servers.common.web.pages import assemble
from shared.transports.http.app.app import HttpApp, HttpOptions
from shared.transports.http.app.mount import Mount
from tests.servers.bundle.commands.test_serve import serving
from tests.shared.transports.http.http_wire import PATIENCE, make_server


def client(**options: object) -> httpx.AsyncClient:
    """Returns a client of a listener with the page."""
    http = HttpOptions(**options)  # type: ignore[arg-type]
    app = HttpApp([Mount(make_server(), "/one/mcp", http.limits)], http, Workbench().answer)
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost")


async def test_the_content_security_policy_allows_only_the_own_server() -> None:
    async with client() as http:
        headers = (await http.get("/")).headers
    policy = dict(rule.split(" ", 1) for rule in headers["content-security-policy"].split("; "))
    hashed = {name: policy.pop(name).split() for name in ("script-src", "style-src")}
    assert all(re.fullmatch(r"'sha256-[\w+/]{43}='", one) for several in hashed.values() for one in several)
    assert policy == {
        "default-src": "'none'",
        "connect-src": "'self'",
        "img-src": "data: blob: 'self'",
        "media-src": "data: blob:",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }
    others = {name: headers[name] for name in ("referrer-policy", "x-content-type-options", "x-frame-options")}
    assert others == {
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
    }
    assert headers["cross-origin-opener-policy"] == "same-origin"


async def test_an_unchanged_page_is_answered_with_304() -> None:
    async with client() as http:
        first = await http.get("/")
        again = await http.get("/", headers={"if-none-match": first.headers["etag"]})
        other = await http.get("/", headers={"if-none-match": '"other"'})
    assert first.headers["cache-control"] == "no-cache"
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", first.headers["etag"])
    assert "content-security-policy" in again.headers
    assert other.text == first.text == assemble(INDEX).html


async def test_the_page_is_compressed_and_read_only() -> None:
    """A client without gzip gets plain bytes; HEAD has the headers of the page, other methods are refused."""
    async with client() as http:
        async with http.stream("GET", "/", headers={"accept-encoding": "gzip"}) as answer:
            sent = b"".join([chunk async for chunk in answer.aiter_raw()])
        packed, plain = [await http.get("/", headers={"accept-encoding": one}) for one in ("gzip", "identity")]
        head = await http.head("/")
        refused = [
            (await http.request(method, "/", data={"a": "b"})).status_code for method in ("POST", "PUT", "DELETE")
        ]
    assert len(sent) <= 150 * 1024
    assert [one.headers.get("content-encoding") for one in (packed, plain)] == ["gzip", None]
    assert packed.text == plain.text
    assert (head.status_code, head.content, refused) == (200, b"", [405, 405, 405])
    assert head.headers["content-security-policy"] == plain.headers["content-security-policy"]


async def test_only_the_page_is_served_without_a_token() -> None:
    async with client(tokens=("hunter2",)) as http:
        page, metrics, answer = await http.get("/"), await http.get("/metrics"), await http.post("/one/mcp")
        strangers = [{"host": "evil.example"}, {"origin": "https://evil.example"}]
        refused = [(await http.get("/", headers=headers)).status_code for headers in strangers]
    assert (page.status_code, metrics.status_code, answer.status_code, refused) == (200, 401, 401, [403, 403])
    assert page.text == assemble(INDEX).html
    assert "hunter2" not in page.text + json.dumps(dict(page.headers))


async def test_the_page_without_scripts_explains_how_to_connect() -> None:
    noscript = re.search("<noscript>(.*)</noscript>", assemble(INDEX).html, re.DOTALL)
    assert noscript is not None
    for part in ("/NAME/mcp", "Bearer YOUR_TOKEN", "login URL", "/healthz", "/readyz", "/metrics"):
        assert part in noscript[1], part


@pytest.mark.slow
def test_no_page_disables_the_page(tmp_path: Path) -> None:
    with serving(tmp_path, "--no-page", "prompts") as (process, url):
        found = [httpx.get(f"{url}{path}", timeout=PATIENCE, trust_env=False) for path in ("/", "/healthz")]
        process.process.terminate()
        assert process.wait() == 0
    assert [one.status_code for one in found] == [404, 200]
    assert found[1].json().keys() == {"status", "version", "sessions", "streams"}
