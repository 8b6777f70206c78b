"""What the official suite has written to find wrong with a protected server, and has not released: audiences, scope
challenges, proofs of possession, metadata, and answers to whoever has no token. The checks are the same, each of
them a case here, against a server that runs as a process.
"""

import json
import re
import sys
import time
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from secrets import token_urlsafe
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from joserfc import jwt
from joserfc.jwk import ECKey, OctKey

from tests.shared.auth.issuing import STRANGER, FakeIssuer, issuing
from tests.wire import CLIENT_INFO, STATELESS, Json, Wire, listening, with_envelope

LOW, FULL = "mcp-conformance-scope-low", "mcp-conformance-scope-full"
BASELINE = "mcp:conformance:baseline"
OPERATIONS: dict[str, tuple[str, Json, list[str]]] = {
    "tool": (
        "tools/call",
        {"name": "test_simple_text"},
        ["mcp:conformance:tools:call", "mcp:conformance:tools:test_simple_text"],
    ),
    "static resource": (
        "resources/read",
        {"uri": "test://static-text"},
        ["mcp:conformance:resources:read", "mcp:conformance:resources:static"],
    ),
    "template resource": (
        "resources/read",
        {"uri": "test://template/123/data"},
        ["mcp:conformance:resources:read", "mcp:conformance:resources:template:123"],
    ),
    "prompt": (
        "prompts/get",
        {"name": "test_simple_prompt"},
        ["mcp:conformance:prompts:get", "mcp:conformance:prompts:test_simple_prompt"],
    ),
}
"""What is asked for, and the scopes that it takes."""
KEYS = {
    "tool": "test_simple_text",
    "static resource": "resource:test://static-text",
    "template resource": "resource:test://template/123/data",
    "prompt": "prompt:test_simple_prompt",
}
"""How the table of scopes calls each of them."""


@dataclass
class Site:
    """A server that trusts one issuer, and what is sent to it."""

    url: str
    issuer: FakeIssuer
    client: httpx.AsyncClient

    async def send(
        self,
        method: str = "server/discover",
        params: Json | None = None,
        headers: list[tuple[str, str]] | None = None,
    ) -> httpx.Response:
        """The answer to one stateless request."""
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": with_envelope(params)}
        name = (params or {}).get("name") or (params or {}).get("uri") or ""
        sent = [
            ("accept", "application/json, text/event-stream"),
            ("content-type", "application/json"),
            ("mcp-protocol-version", STATELESS),
            ("mcp-method", method),
            *([("mcp-name", name)] if name else []),
            *(headers or []),
        ]
        return await self.client.post(self.url, headers=sent, content=json.dumps(message))

    async def bearer(self, token: str) -> httpx.Response:
        """The answer to who brings `token`."""
        return await self.send(headers=[("authorization", f"Bearer {token}")])

    def token(self, **claims: Any) -> str:
        """A token for this server; a claim that is None is left out."""
        return self.issuer.sign(**{"aud": self.url, **claims})


@asynccontextmanager
async def protected(folder: Path) -> AsyncIterator[Site]:
    """A server whose tokens come from an issuer that is there as long as the block."""
    async with issuing() as issuer:
        everything = sorted({scope for *_, scopes in OPERATIONS.values() for scope in scopes})
        (folder / "tokens.toml").write_text(
            f'[low]\ndigest = "{digest(LOW)}"\nscopes = ["{BASELINE}"]\n'
            f'[full]\ndigest = "{digest(FULL)}"\nscopes = {json.dumps([BASELINE, *everything])}\n'
        )
        table = "\n".join(f'"{KEYS[name]}" = {json.dumps(scopes)}' for name, (*_, scopes) in OPERATIONS.items())
        (folder / "settings.toml").write_text(
            f'auth-issuer = ["{issuer.url}"]\ntokens-file = "tokens.toml"\n[scopes]\n{table}\n'
        )
        command = [sys.executable, "-m", "servers.everything", "--transport", "http", "--port", "0"]
        async with Wire([*command, "--settings", str(folder / "settings.toml")]) as process:
            try:
                url = f"{await listening(process)}/mcp"
                async with httpx.AsyncClient(trust_env=False) as client:
                    yield Site(url, issuer, client)
            finally:
                process.terminate()


def digest(token: str) -> str:
    return f"sha256:{sha256(token.encode()).hexdigest()}"


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with protected(tmp_path) as found:
        yield found


def challenge_of(answer: httpx.Response, scheme: str = "Bearer") -> dict[str, str]:
    """The parameters of the challenge of that scheme."""
    said = answer.headers["www-authenticate"]
    assert said.startswith(f"{scheme} "), said
    pairs = re.findall(r'([a-z_]+)="((?:[^"\\]|\\.)*)"', said)
    return dict(pairs)


# auth-token-audience-validation


async def test_tokens_of_other_audiences_are_refused(site: Site) -> None:
    refused = {
        "other audience": site.token(aud="https://other.example.com/mcp"),
        "no audience": site.token(aud=None),
        "expired": site.token(iat=int(time.time()) - 3_900, exp=int(time.time()) - 300),
        "a key that was never published": site.token(key=STRANGER),
    }
    assert (await site.send()).status_code == 401
    assert (await site.bearer(site.token())).status_code == 200
    for what, token in refused.items():
        answer = await site.bearer(token)
        assert (what, answer.status_code) == (what, 401)
        assert challenge_of(answer)["error"] == "invalid_token"


# sep-2350-server-scope-challenge


async def test_a_challenge_names_all_missing_scopes(site: Site) -> None:
    for what, (method, params, scopes) in OPERATIONS.items():
        refused = await site.send(method, params, [("authorization", f"Bearer {LOW}")])
        assert (what, refused.status_code) == (what, 403)
        challenge = challenge_of(refused)
        assert challenge["error"] == "insufficient_scope"
        assert set(scopes) <= set(challenge["scope"].split())
        metadata = await site.client.get(challenge["resource_metadata"])
        assert metadata.json()["resource"] == site.url
        granted = await site.send(method, params, [("authorization", f"Bearer {FULL}")])
        assert granted.status_code == 200
        assert "result" in granted.json()


# server/auth-prm-discovery, -prm-resource-validation, -discovery-mechanism


async def test_metadata_is_served_at_its_path_and_at_the_root(site: Site) -> None:
    parts = urlsplit(site.url)
    root = f"{parts.scheme}://{parts.netloc}/.well-known/oauth-protected-resource"
    for url in (root + parts.path, root):
        answer = await site.client.get(url)
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "application/json"
        document = answer.json()
        assert document["resource"] == site.url
        assert "#" not in document["resource"]
        assert document["authorization_servers"] == [site.issuer.url]
        assert all(isinstance(scope, str) for scope in document["scopes_supported"])
        assert "offline_access" not in document["scopes_supported"]
        assert document["bearer_methods_supported"] == ["header"]


async def test_metadata_names_the_issuer(site: Site) -> None:
    root = site.url.removesuffix("/mcp")
    (issuer,) = (await site.client.get(f"{root}/.well-known/oauth-protected-resource/mcp")).json()[
        "authorization_servers"
    ]
    found = await site.client.get(f"{issuer}/.well-known/oauth-authorization-server")
    assert found.json()["issuer"] == issuer


# server/auth-401-unauthorized, -www-authenticate-header


@pytest.mark.parametrize("method", ["initialize", "tools/list"])
async def test_a_challenge_without_a_token_names_the_metadata(site: Site, method: str) -> None:
    params = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": CLIENT_INFO}
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params if method == "initialize" else {}}
    headers = {"accept": "application/json, text/event-stream"}
    answer = await site.client.post(site.url, headers=headers, json=message)
    assert answer.status_code == 401
    assert "error" in answer.json()
    challenge = challenge_of(answer)
    assert urlsplit(challenge["resource_metadata"]).scheme == "http"
    assert all(re.fullmatch(r"[\x21\x23-\x5B\x5D-\x7E]+", scope) for scope in challenge["scope"].split(" "))
    assert "error" not in challenge


# auth/dpop-server-validation


@dataclass
class Proof:
    """What a proof of possession says, and how it is wrong."""

    claims: Json = field(default_factory=dict)
    """In place of the right ones; None leaves one out."""
    later: int = 0
    """By how many seconds it was made later than now."""
    header: Json = field(default_factory=dict)
    key: ECKey | None = None
    """What it is signed with, where that is another key than it names."""


KEY = ECKey.generate_key("P-256")


def proof(site: Site, token: str, wrong: Proof | None = None) -> str:
    wrong = wrong or Proof()
    ath = create_s256_code_challenge(token)  # the same digest in the same form (RFC 9449, section 4.2)
    claims = {
        "jti": token_urlsafe(16),
        "htm": "POST",
        "htu": site.url,
        "iat": int(time.time()) + wrong.later,
        "ath": ath,
    }
    header = {"typ": "dpop+jwt", "alg": "ES256", "jwk": KEY.as_dict(private=False)}
    told = {name: value for name, value in {**claims, **wrong.claims}.items() if value is not None}
    head = {name: value for name, value in {**header, **wrong.header}.items() if value is not None}
    return jwt.encode(head, told, wrong.key or KEY, algorithms=["ES256", "HS256"])


async def present(site: Site, token: str, *proofs: str, scheme: str = "DPoP") -> httpx.Response:
    return await site.send(headers=[("authorization", f"{scheme} {token}"), *(("dpop", one) for one in proofs)])


def bound(site: Site, key: ECKey = KEY, **claims: Any) -> str:
    return site.token(cnf={"jkt": key.thumbprint()}, **claims)


async def test_a_bound_token_with_its_proof_is_accepted(site: Site) -> None:
    token = bound(site)
    assert (await present(site, token, proof(site, token))).status_code == 200


WRONG: dict[str, Proof] = {
    "signed with another key": Proof(key=ECKey.generate_key("P-256")),
    "no jti": Proof({"jti": None}),
    "another type": Proof(header={"typ": "jwt"}),
    "for another URL": Proof({"htu": "https://wrong.example.com/mcp"}),
    "for another method": Proof({"htm": "GET"}),
    "with the private key": Proof(header={"jwk": KEY.as_dict(private=True)}),
    "for another token": Proof({"ath": "not-the-right-hash"}),
    "no method": Proof({"htm": None}),
    "no URL": Proof({"htu": None}),
    "no time": Proof({"iat": None}),
    "no key": Proof(header={"jwk": None}),
    "for no token": Proof({"ath": None}),
    "too old": Proof(later=-363),
    "from the future": Proof(later=363),
}


async def test_every_defect_of_a_proof_is_refused(site: Site) -> None:
    for what, wrong in WRONG.items():
        token = bound(site)
        answer = await present(site, token, proof(site, token, wrong))
        assert (what, answer.status_code) == (what, 401)
        assert challenge_of(answer, "DPoP")["error"] == "invalid_dpop_proof"


async def test_a_proof_with_a_symmetric_signature_is_refused(site: Site) -> None:
    token = bound(site)
    secret = OctKey.generate_key(256)
    symmetric = proof(site, token, Proof(header={"alg": "HS256"}, key=secret))  # type: ignore[arg-type]
    _, claims, _ = proof(site, token).split(".")
    unsigned = (
        f"{_base64(json.dumps({'typ': 'dpop+jwt', 'alg': 'none', 'jwk': KEY.as_dict(private=False)}))}.{claims}."
    )
    for one in (symmetric, unsigned, "this-is-not-a-jwt"):
        answer = await present(site, token, one)
        assert answer.status_code == 401
        assert challenge_of(answer, "DPoP")["error"] == "invalid_dpop_proof"


async def test_two_proofs_in_a_request_are_refused(site: Site) -> None:
    token = bound(site)
    answer = await present(site, token, proof(site, token), proof(site, token))
    assert answer.status_code == 401
    assert challenge_of(answer, "DPoP")


async def test_a_bound_token_is_refused_as_a_bearer_token(site: Site) -> None:
    token = bound(site)
    answer = await present(site, token, proof(site, token), scheme="Bearer")
    assert answer.status_code == 401
    assert "www-authenticate" in answer.headers


async def test_a_proof_with_another_key_is_refused(site: Site) -> None:
    token = bound(site, key=ECKey.generate_key("P-256"))
    answer = await present(site, token, proof(site, token))
    assert answer.status_code == 401
    assert challenge_of(answer, "DPoP")


async def test_a_proof_does_not_replace_the_audience(site: Site) -> None:
    token = bound(site, aud="https://not-this-server.example.com/mcp")
    answer = await present(site, token, proof(site, token))
    assert answer.status_code == 401
    assert challenge_of(answer, "DPoP")


def _base64(text: str) -> str:
    return urlsafe_b64encode(text.encode()).rstrip(b"=").decode()
