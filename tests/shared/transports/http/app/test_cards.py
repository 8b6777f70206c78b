"""Server cards, and the catalog that lists them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from shared import Implementation, Server
from shared.protocol.versions import VERSIONS
from shared.server.server import NoSettings
from shared.transports.http.app.app import HttpApp, HttpOptions
from shared.transports.http.app.cards import CATALOG
from shared.transports.http.app.mount import Mount
from shared.transports.http.app.oauth_metadata import Issuers
from shared.transports.http.limits.endpoint_limits import EndpointLimits
from tests.shared.auth.issuing import issuing, trusting
from tests.shared.transports.http.http_wire import listening, make_server, served

CARD = "/mcp/server-card"
SCHEMA = "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json"


@asynccontextmanager
async def several(*names: str, **options: Any) -> AsyncIterator[httpx.AsyncClient]:
    """Serves servers of these names behind one listener that publishes their cards."""
    mounts = [Mount(make_server(), f"/{name}/mcp", EndpointLimits(), NoSettings(), name) for name in names]
    app = HttpApp(mounts, HttpOptions(cards=True, **options))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1:8000") as client:
        yield client


async def test_a_card_describes_the_server_and_its_url() -> None:
    async with served(cards=True) as site:
        answer = await site.client.get(CARD, headers={"Accept": "application/mcp-server-card+json"})
        port = site.port
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/mcp-server-card+json")
    implementation = make_server().implementation
    assert answer.json() == {
        "$schema": SCHEMA,
        "name": "localhost/sample",
        "version": implementation.version,
        "description": implementation.description or "sample",
        "title": implementation.title or "sample",
        "remotes": [
            {
                "type": "streamable-http",
                "url": f"http://127.0.0.1:{port}/mcp",
                "supportedProtocolVersions": [version.date for version in VERSIONS],
            }
        ],
    }


async def test_cards_and_catalog_are_readable_by_any_origin_and_cacheable() -> None:
    async with served(cards=True) as site:
        for path in (CARD, CATALOG):
            answer = await site.client.get(path, headers={"Origin": "https://elsewhere.example"})
            assert answer.status_code == 200
            assert answer.headers["access-control-allow-origin"] == "*"
            assert "ETag" in answer.headers["access-control-expose-headers"]
            assert answer.headers["cache-control"] == "public, max-age=3600"
            known = await site.client.get(path, headers={"If-None-Match": f'"other", W/{answer.headers["etag"]}'})
            assert (known.status_code, known.content) == (304, b"")
            changed = await site.client.get(path, headers={"If-None-Match": '"other"'})
            assert changed.status_code == 200


async def test_the_catalog_lists_the_cards_of_all_servers() -> None:
    async with several("files", "data") as client:
        answer = await client.get(CATALOG)
        assert answer.headers["content-type"] == "application/ai-catalog+json"
        catalog = answer.json()
        assert catalog["specVersion"] == "1.0"
        assert [entry["identifier"] for entry in catalog["entries"]] == [
            "urn:air:localhost:mcp:files",
            "urn:air:localhost:mcp:data",
        ]
        for entry in catalog["entries"]:
            assert entry["type"] == "application/mcp-server-card+json"
            card = (await client.get(entry["url"])).json()
            assert card["name"] == f"localhost/{entry['identifier'].rpartition(':')[2]}"


@pytest.mark.parametrize("prefix", ["", "/tools"])
async def test_cards_and_catalog_use_the_public_url_behind_a_proxy(prefix: str) -> None:
    """The proxy forwards the prefix, or strips it."""
    async with several("files", public_url="https://mcp.example.com/tools") as client:
        [entry] = (await client.get(prefix + CATALOG)).json()["entries"]
        assert entry["identifier"] == "urn:air:mcp.example.com:mcp:files"
        assert entry["url"] == "https://mcp.example.com/tools/files/mcp/server-card"
        card = (await client.get(f"{prefix}/files/mcp/server-card")).json()
    assert card["name"] == "com.example.mcp/files"
    assert card["remotes"][0]["url"] == "https://mcp.example.com/tools/files/mcp"


async def test_cards_need_no_token_and_state_that_the_server_needs_one() -> None:
    async with served(cards=True, tokens=("secret",)) as site:
        assert (await site.client.get(CATALOG)).status_code == 200
        card = await site.client.get(CARD)
        assert (await site.client.get("/mcp")).status_code == 401
    [header] = card.json()["remotes"][0]["headers"]
    assert (header["name"], header["isRequired"], header["isSecret"]) == ("Authorization", True, True)
    assert "secret" not in card.text


async def test_a_card_names_no_token_header_when_an_issuer_is_set() -> None:
    async with issuing() as issuer, make_server().open() as running:
        guard, issuers = trusting(issuer), Issuers((issuer.url,))
        async with listening(running, authenticator=guard, issuers=issuers, cards=True) as site:
            card = (await site.client.get(CARD)).json()
    assert "headers" not in card["remotes"][0]


async def test_long_card_texts_are_truncated_and_names_sanitized() -> None:
    server = Server(Implementation(name="süß & co", version="1", title="t" * 101, description="d" * 101))
    mount = Mount(server, "/mcp", EndpointLimits(), NoSettings(), "süß & co")
    app = HttpApp([mount], HttpOptions(cards=True))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
        card = (await client.get(CARD)).json()
    assert (card["name"], card["title"], card["description"]) == (
        "localhost/s-----co",
        "t" * 99 + "…",
        "d" * 99 + "…",
    )


async def test_cards_refuse_other_hosts_and_methods() -> None:
    async with served(cards=True) as site:
        assert (await site.client.get(CARD, headers={"Host": "rebound.example"})).status_code == 403
        assert (await site.client.post(CARD)).status_code == 405


async def test_cards_are_off_by_default() -> None:
    async with served() as site:
        assert [(await site.client.get(path)).status_code for path in (CARD, CATALOG)] == [404, 404]
