"""The metadata of protected resources, over HTTP."""

import httpx
import pytest

from shared.protocol.http.protected import WELL_KNOWN
from shared.protocol.http.rules import Denial, HttpRequest
from shared.transports.http.app import HttpApp, HttpOptions
from shared.transports.http.mount import Mount
from shared.transports.http.protection import Issuers
from tests.shared.transports.http.http_wire import make_server

ISSUER = "https://issuer.example.com"
HOST = "http://localhost:8000"


class Nobody:
    """Refuses everybody, and says what for."""

    async def authenticate(self, request: HttpRequest) -> Denial:
        assert request.resource is not None
        return Denial("no token", request.resource.challenge("invalid_token"))


async def answers(
    *paths: str, public_url: str | None = None, mounts: tuple[str, ...] = ("/mcp",)
) -> list[httpx.Response]:
    """The answers to GET at these paths."""
    options = HttpOptions(
        authenticator=Nobody(), issuers=Issuers((ISSUER,), public_url, ("ES256",), needs_proof=True)
    )
    served = [Mount(make_server(), path, options.limits) for path in mounts]
    for mount in served:
        mount.scopes = lambda: (("sample:read", "sample:write"), ("sample:read",))
    app = HttpApp(served, options)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=HOST) as client:
        return [await client.get(path) for path in paths]


async def test_what_a_server_says_of_itself() -> None:
    (answer,) = await answers(f"{WELL_KNOWN}/mcp")
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == "*"
    assert answer.json() == {
        "resource": f"{HOST}/mcp",
        "authorization_servers": [ISSUER],
        "bearer_methods_supported": ["header"],
        "resource_name": "sample",
        "scopes_supported": ["sample:read", "sample:write"],
        "dpop_signing_alg_values_supported": ["ES256"],
        "dpop_bound_access_tokens_required": True,
    }


async def test_the_root_is_that_of_the_only_server() -> None:
    at_path, at_root = await answers(f"{WELL_KNOWN}/mcp", WELL_KNOWN)
    assert at_root.json() == at_path.json()


@pytest.mark.parametrize(("paths", "status"), [(("/one/mcp", "/two/mcp"), 401), (("/one/mcp", "/mcp"), 200)])
async def test_the_root_is_that_of_the_joined_server(paths: tuple[str, ...], status: int) -> None:
    *own, root = await answers(*(WELL_KNOWN + path for path in paths), WELL_KNOWN, mounts=paths)
    assert [one.json()["resource"] for one in own] == [HOST + path for path in paths]
    if status == 200:
        assert root.json()["resource"] == f"{HOST}/mcp"
    else:
        assert root.status_code == 404


async def test_the_paths_of_older_transports_are_resources_too() -> None:
    (answer,) = await answers(f"{WELL_KNOWN}/sse")
    assert answer.json()["resource"] == f"{HOST}/sse"


async def test_a_proxy_has_another_url() -> None:
    (answer,) = await answers(f"{WELL_KNOWN}/mcp", public_url="https://mcp.example.org")
    assert answer.json()["resource"] == "https://mcp.example.org/mcp"


async def test_who_has_no_token_is_told_where_to_get_one() -> None:
    (answer,) = await answers("/mcp")
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == (
        f'Bearer error="invalid_token", resource_metadata="{HOST}{WELL_KNOWN}/mcp", scope="sample:read"'
    )


@pytest.mark.parametrize("path", ["/mcp", "/tools/mcp"], ids=["taken away", "passed on"])
async def test_a_proxy_may_have_a_path_of_its_own(path: str) -> None:
    answer, denied = await answers(WELL_KNOWN + path, "/mcp", public_url="https://mcp.example.org/tools")
    assert answer.json()["resource"] == "https://mcp.example.org/tools/mcp"
    assert f'resource_metadata="https://mcp.example.org{WELL_KNOWN}/tools/mcp"' in denied.headers["www-authenticate"]


async def test_a_page_of_any_origin_may_ask_for_it() -> None:
    options = HttpOptions(
        authenticator=Nobody(), issuers=Issuers((ISSUER,)), allowed_origins=("https://page.example",)
    )
    app = HttpApp([Mount(make_server(), "/mcp", options.limits)], options)
    asks = {"origin": "https://page.example", "access-control-request-method": "GET"}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=HOST) as client:
        before = await client.options(f"{WELL_KNOWN}/mcp", headers=asks)
        answer = await client.get(f"{WELL_KNOWN}/mcp", headers={"origin": "https://page.example"})
        elsewhere = await client.get(f"{WELL_KNOWN}/mcp", headers={"origin": "https://other.example"})
        head = await client.head(f"{WELL_KNOWN}/mcp")
    assert (before.status_code, answer.status_code, head.status_code) == (200, 200, 200)
    for one in (before, answer, elsewhere):
        assert one.headers["access-control-allow-origin"] == "*"
    assert elsewhere.status_code == 200
