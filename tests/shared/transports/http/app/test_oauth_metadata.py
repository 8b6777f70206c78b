"""Protected resource metadata (RFC 9728), and tokens of an issuer on every transport."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from shared.auth.dpop import make_proof, new_key
from shared.auth.policy import Policy
from shared.auth.possession import Possession
from shared.auth.tokens import StaticTokens
from shared.extensions.access import access
from shared.protocol.http.protected import WELL_KNOWN
from shared.protocol.http.rules import Denial, HttpRequest
from shared.server.server import NoSettings
from shared.transports.http.app.app import HttpApp, HttpOptions
from shared.transports.http.app.mount import Mount
from shared.transports.http.app.oauth_metadata import Issuers
from shared.transports.http.limits.endpoint_limits import EndpointLimits
from tests.redis_server import RedisServer
from tests.redis_stores import InRedis
from tests.shared.auth.issuing import FakeIssuer, issuing, trusting
from tests.shared.auth.sites import as_json
from tests.shared.transports.http.http_wire import Site, listening, make_server, merged
from tests.shared.transports.http.sse_wire import initialized
from tests.shared.transports.http.web_socket import UPGRADE, upgrading, web_socket

ISSUER = "https://issuer.example.com"
HOST = "http://localhost:8000"


class Nobody:
    """Denies every request, with the challenge of its resource."""

    async def authenticate(self, request: HttpRequest) -> Denial:
        assert request.resource is not None
        return Denial("no token", request.resource.challenge("invalid_token"))


async def answers(
    *paths: str, public_url: str | None = None, mounts: tuple[str, ...] = ("/mcp",)
) -> list[httpx.Response]:
    """Returns the answers to GET at these paths."""
    options = HttpOptions(
        authenticator=Nobody(), issuers=Issuers((ISSUER,), public_url, ("ES256",), needs_proof=True)
    )
    served = [Mount(make_server(), path, options.limits) for path in mounts]
    for mount in served:
        mount.scopes = lambda: (("sample:read", "sample:write"), ("sample:read",))
    app = HttpApp(served, options)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=HOST) as client:
        return [await client.get(path) for path in paths]


async def test_metadata_describes_the_protected_resource() -> None:
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


async def test_root_metadata_describes_the_only_or_the_joined_server() -> None:
    at_path, with_slash, at_root = await answers(f"{WELL_KNOWN}/mcp", f"{WELL_KNOWN}/mcp/", WELL_KNOWN)
    assert at_root.json() == with_slash.json() == at_path.json()
    for paths, resource in ((("/one/mcp", "/two/mcp"), None), (("/one/mcp", "/mcp"), f"{HOST}/mcp")):
        *own, root = await answers(*(WELL_KNOWN + path for path in paths), WELL_KNOWN, mounts=paths)
        assert [one.json()["resource"] for one in own] == [HOST + path for path in paths]
        assert (root.status_code, root.json().get("resource")) == (404 if resource is None else 200, resource)


async def test_legacy_sse_paths_have_metadata() -> None:
    (answer,) = await answers(f"{WELL_KNOWN}/sse", public_url="https://mcp.example.org")
    assert answer.json()["resource"] == "https://mcp.example.org/sse"


async def test_a_401_names_the_metadata_url() -> None:
    (answer,) = await answers("/mcp")
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == (
        f'Bearer error="invalid_token", resource_metadata="{HOST}{WELL_KNOWN}/mcp", scope="sample:read"'
    )


@pytest.mark.parametrize("path", ["/mcp", "/tools/mcp"], ids=["taken away", "passed on"])
async def test_metadata_uses_the_path_of_a_proxy(path: str) -> None:
    answer, denied = await answers(WELL_KNOWN + path, "/mcp", public_url="https://mcp.example.org/tools")
    assert answer.json()["resource"] == "https://mcp.example.org/tools/mcp"
    assert f'resource_metadata="https://mcp.example.org{WELL_KNOWN}/tools/mcp"' in denied.headers["www-authenticate"]


async def test_metadata_is_readable_by_pages_of_any_origin() -> None:
    options = HttpOptions(
        authenticator=Nobody(), issuers=Issuers((ISSUER,)), allowed_origins=("https://page.example",)
    )
    app = HttpApp([Mount(make_server(), "/mcp", options.limits)], options)
    asks = {"origin": "https://page.example", "access-control-request-method": "GET"}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=HOST) as client:
        previous = await client.options(f"{WELL_KNOWN}/mcp", headers=asks)
        answer = await client.get(f"{WELL_KNOWN}/mcp", headers={"origin": "https://page.example"})
        elsewhere = await client.get(f"{WELL_KNOWN}/mcp", headers={"origin": "https://other.example"})
        head = await client.head(f"{WELL_KNOWN}/mcp")
    assert (previous.status_code, answer.status_code, head.status_code) == (200, 200, 200)
    for one in (previous, answer, elsewhere):
        assert one.headers["access-control-allow-origin"] == "*"
    assert elsewhere.status_code == 200


# Tokens of an issuer
ECHO = {"name": "echo", "arguments": {"text": "hi"}}


@dataclass
class Door:
    """A listener and its token issuer."""

    site: Site
    issuer: FakeIssuer

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.site.port}"

    def bearer(self, path: str = "/mcp", **claims: Any) -> dict[str, str]:
        token = self.issuer.sign(**{"aud": self.url + path, "scope": "sample:write", **claims})
        return {"Authorization": f"Bearer {token}"}

    async def call(self, headers: dict[str, str]) -> Any:
        """Sends a stateless (2026-07-28) call."""
        message, routed = self.site.stateless("tools/call", ECHO)
        return await self.site.post(message, {**routed, **headers})


@asynccontextmanager
async def protected(**options: Any) -> AsyncIterator[Door]:
    """Serves tools that need scopes, with an issuer of the test."""
    async with issuing() as issuer:
        guard = trusting(issuer, **options)
        extensions = [access(Policy("sample"))]
        async with (
            make_server().open(extensions=extensions) as running,
            listening(running, authenticator=guard, issuers=Issuers((issuer.url,))) as site,
        ):
            yield Door(site, issuer)


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/mcp"), ("GET", "/mcp"), ("DELETE", "/mcp"), ("GET", "/sse"), ("POST", "/messages?session_id=x")],
)
async def test_every_endpoint_refuses_requests_without_a_token(method: str, path: str) -> None:
    async with protected() as door:
        answer = await door.site.client.request(method, path, headers=merged(None))
    metadata = f'resource_metadata="{door.url}{WELL_KNOWN}{path.partition("?")[0]}"'
    assert (answer.status_code, metadata in answer.headers["www-authenticate"]) == (401, True)


async def test_a_websocket_without_a_token_is_refused_before_the_upgrade() -> None:
    async with protected() as door:
        # The URL that its client uses.
        url = f"http://localhost:{door.site.port}"
        async with upgrading(door.site) as (_stream, _received, head):
            assert head.startswith("http/1.1 401 ")
            assert f'resource_metadata="{url}{WELL_KNOWN}/mcp"' in head
        async with web_socket(door.site, {**UPGRADE, **door.bearer(aud=f"{url}/mcp")}) as socket:
            await socket.initialize()
            answer = await socket.call("echo", text="hi")
    assert answer["result"]["content"][0]["text"] == "hi"


async def test_a_token_for_the_sse_path_serves_the_whole_legacy_transport() -> None:
    async with protected() as door, initialized(door.site, door.bearer("/sse")) as client:
        assert await client.call("echo", {"text": "hi"}) == "hi"


async def test_each_session_request_has_the_scopes_of_its_own_token() -> None:
    async with protected() as door:
        wide, narrow, other = door.bearer(), door.bearer(scope="sample:read"), door.bearer(sub="bob")
        session = await door.site.initialize(headers=wide)
        message = door.site.message("tools/call", ECHO)
        for headers, status in ((wide, 200), (narrow, 403), (wide, 200), (other, 404)):
            answer = await door.site.post(message, {**session, **headers})
            assert answer.status_code == status
            message["id"] += 1


async def test_a_403_names_the_missing_scope() -> None:
    async with protected() as door:
        refused = await door.call(door.bearer(scope="sample:read"))
        challenge = refused.headers["www-authenticate"]
        assert (refused.status_code, 'error="insufficient_scope"' in challenge) == (403, True)
        assert 'scope="sample:write"' in challenge
        assert f'resource_metadata="{door.url}{WELL_KNOWN}/mcp"' in challenge
        assert (await door.call(door.bearer())).status_code == 200


async def test_tokens_verified_before_are_accepted_while_the_issuer_is_unreachable() -> None:
    async with protected(own_tokens=StaticTokens(["own"])) as door:
        door.issuer.put("/jwks", as_json({}, 500))
        for _ in range(2):
            unknown = await door.call(door.bearer())
            assert (unknown.status_code, "retry-after" in unknown.headers) == (503, True)
            assert (await door.call({"Authorization": "Bearer own"})).status_code == 200
    async with protected() as door:
        seen = door.bearer()
        assert (await door.call(seen)).status_code == 200
        door.issuer.put("/jwks", as_json({}, 500))
        assert (await door.call(seen)).status_code == 200


@pytest.mark.parametrize("host", ["localhost:9", "127.0.0.1:9", "localhost", "[::1]:9"])
async def test_a_token_for_another_listener_on_the_same_machine_is_refused(host: str) -> None:
    async with protected() as door:
        refused = await door.call({**door.bearer(aud=f"http://{host}/mcp"), "Host": host})
        assert refused.status_code == 401
        name = host.removesuffix(":9").replace("[::1]", "localhost")  # a port on which the server does not listen
        assert f'"http://{name}:{door.site.port}{WELL_KNOWN}/mcp"' in refused.headers["www-authenticate"]
        own = door.bearer(aud=f"http://{name}:{door.site.port}/mcp")
        assert (await door.call({**own, "Host": f"{name}:{door.site.port}"})).status_code == 200


async def test_a_token_in_the_query_is_refused() -> None:
    async with protected() as door:
        token = door.bearer()["Authorization"].removeprefix("Bearer ")
        answer = await door.site.client.post(f"/mcp?access_token={token}", content=b"{}", headers=merged(None))
    assert answer.status_code == 400
    assert token not in answer.text


async def test_a_bound_token_needs_a_proof_with_the_nonce_of_the_server() -> None:
    async with protected(possession=Possession("nonce")) as door:
        key, url = new_key(), f"{door.url}/mcp"
        sent = door.bearer(cnf={"jkt": key.thumbprint()})
        token = sent["Authorization"].removeprefix("Bearer ")

        def proved(nonce: str | None) -> dict[str, str]:
            proof = make_proof(key, "POST", url, time.time(), token=token, nonce=nonce)
            return {"Authorization": f"DPoP {token}", "DPoP": proof}

        assert (await door.call(sent)).status_code == 401
        refused = await door.call(proved(None))
        assert 'error="use_dpop_nonce"' in refused.headers["www-authenticate"]
        again = proved(refused.headers["dpop-nonce"])
        assert (await door.call(again)).status_code == 200
        replayed = await door.call(again)
        assert (replayed.status_code, "invalid_dpop_proof" in replayed.headers["www-authenticate"]) == (401, True)


@pytest.mark.parametrize("is_shared", [True, False])
async def test_a_proof_is_accepted_once_across_replicas(redis_server: RedisServer, is_shared: bool) -> None:
    """This holds for each server of a listener, even while the first has not started."""
    server, key, stores = make_server(), new_key(), InRedis(redis_server) if is_shared else None
    async with issuing() as issuer, server.open(stores=stores) as one, server.open(stores=stores) as other:
        token = issuer.sign(aud=["https://a.test/late", "https://a.test/mcp"], cnf={"jkt": key.thumbprint()})
        now = time.time()
        early_data, proof = (
            make_proof(key, "GET", f"https://a.test/{at}", now, token=token) for at in ("late", "mcp")
        )
        answers = []
        for running in (one, other):
            late = Mount(make_server(), "/late", EndpointLimits(), NoSettings())
            late.stores = stores
            mounts = [late, Mount(running, "/mcp", EndpointLimits())]
            options = HttpOptions(authenticator=trusting(issuer), issuers=Issuers((issuer.url,), "https://a.test"))
            transport = httpx.ASGITransport(HttpApp(mounts, options))
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
                for path, sent in (("/late", early_data), ("/mcp", proof)):
                    headers = {"Authorization": f"DPoP {token}", "DPoP": sent}
                    answers.append((await client.get(path, headers=headers)).json()["error"]["message"])
    starting, unknown = "the server is starting; try again in a moment", "proofs can't be checked at the moment"
    at_late = unknown if is_shared else starting
    assert answers == [at_late, starting, at_late, "the proof was already used" if is_shared else starting]
