"""An authorization server of a test, which signs any claims and can misbehave, and authenticators that trust it."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from joserfc import jwt
from joserfc.jwk import ECKey, Key, RSAKey

from shared.auth.authenticators import OAuthTokens
from shared.auth.claims import ClaimRules
from shared.auth.issuers import Issuer
from shared.auth.jose import ALGORITHMS
from shared.auth.jwt import JwtTokens
from shared.auth.possession import Possession
from shared.auth.web import Web
from shared.protocol.http.protected import WELL_KNOWN, ProtectedResource
from shared.protocol.http.rules import Denial, Headers, HttpRequest
from shared.protocol.identity import Principal
from tests.shared.auth.sites import NOT_FOUND, Answer, Received, Site, as_json, serving

RESOURCE = "https://rs.example/mcp"
METADATA = f"https://rs.example{WELL_KNOWN}/mcp"
PROTECTED = ProtectedResource(RESOURCE, METADATA, frozenset([RESOURCE]), lambda: ["notes:read"])
EC = ECKey.generate_key("P-256", {"kid": "ec"}, private=True)
STRANGER = ECKey.generate_key("P-256", {"kid": "ec"}, private=True)
"""An untrusted key with the id of a trusted one."""


@cache
def rsa() -> RSAKey:
    """The RSA key of all tests, generated at its first use because that is slow."""
    return RSAKey.generate_key(2048, {"kid": "rsa", "use": "sig"}, private=True)


class Clock:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.now = float(int(time.time()))

    def __call__(self) -> float:
        return self.now


@dataclass
class FakeIssuer:
    """An issuer that answers like real ones, except for paths in `answers`."""

    site: Site = field(default_factory=lambda: Site(0))
    keys: list[Key] = field(default_factory=lambda: [rsa(), EC])
    claims: dict[str, Any] = field(default_factory=dict)
    answers: dict[str, Callable[[Received], Awaitable[Answer]]] = field(default_factory=dict)
    """Replaces the answers of these paths."""
    active: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The introspection answers by token; other tokens are not active."""

    @property
    def url(self) -> str:
        return self.site.url

    def put(self, path: str, answer: Answer) -> None:
        """Sets the answer of `path`."""

        async def given(received: Received) -> Answer:
            return answer

        self.answers[path] = given

    async def answer(self, received: Received) -> Answer:
        path = received.path
        if path in self.answers:
            return await self.answers[path](received)
        match path:
            case "/.well-known/oauth-authorization-server":
                return as_json(self.document())
            case "/jwks":
                return as_json({"keys": [key.as_dict(private=False) for key in self.keys]})
            case "/introspect":
                return as_json(self.active.get(received.form["token"][0], {"active": False}))
        return NOT_FOUND

    def document(self, **other: Any) -> dict[str, Any]:
        """Its metadata."""
        endpoints = {"jwks_uri": f"{self.url}/jwks", "introspection_endpoint": f"{self.url}/introspect"}
        return {"issuer": self.url, **endpoints, **other}

    def sign(self, header: dict[str, Any] | None = None, *, key: Key = EC, **claims: Any) -> str:
        """A valid token with these headers and claims; None omits one."""
        now = int(time.time())
        whole = {
            "iss": self.url,
            "aud": RESOURCE,
            "sub": "alice",
            "client_id": "app",
            "scope": "notes:read",
            "exp": now + 600,
            "iat": now,
            **claims,
        }
        head = {
            "alg": "RS256" if key.key_type == "RSA" else "ES256",
            "typ": "at+jwt",
            "kid": key.kid,
            **(header or {}),
        }
        return jwt.encode(
            {name: value for name, value in head.items() if value is not None},
            {name: value for name, value in whole.items() if value is not None},
            key,
            algorithms=[*ALGORITHMS, "HS256", "none"],
            default_type=None,
        )


@asynccontextmanager
async def issuing() -> AsyncIterator[FakeIssuer]:
    """Runs an issuer during the block."""
    issuer = FakeIssuer()
    async with serving(issuer.answer) as site:
        issuer.site = site
        yield issuer


def trusting(*issuers: FakeIssuer, clock: Clock | None = None, patience: float = 2, **options: Any) -> OAuthTokens:
    """An authenticator that accepts tokens of these issuers."""
    ticking = clock or Clock()
    rules = ClaimRules(has_several_issuers=len(issuers) > 1)
    trusted = [Issuer(one.url, Web(timeout=patience), clock=ticking) for one in issuers]
    possession = options.pop("possession", None) or Possession()
    return OAuthTokens(JwtTokens(trusted, rules), possession, clock=ticking, **options)


def request(*, path: str = RESOURCE, query: bytes = b"", method: str = "POST", **headers: str) -> HttpRequest:
    """A request with these headers."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return HttpRequest(method, urlsplit(path).path, Headers(named), query, "192.0.2.1", PROTECTED)


async def bear(tokens: OAuthTokens, token: str) -> Principal | Denial:
    """The principal or denial for a bearer token."""
    return await tokens.authenticate(request(authorization=f"Bearer {token}"))
