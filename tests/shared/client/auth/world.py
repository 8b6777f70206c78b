"""A server that requires tokens, and its issuer: tests can make both do anything wrong."""

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
from joserfc import jws

from shared.auth.web import Web
from shared.client.auth import AuthorizationCode, HttpxAuth, OAuth, OAuthOptions, TokenStore
from shared.client.auth.grants import Grant
from tests.raw import NO_TLS
from tests.shared.auth.sites import NOT_FOUND, Answer, Received, Site, as_json, serving

REDIRECT = "http://127.0.0.1:1/callback"
CHALLENGE = 'Bearer resource_metadata="{}/.well-known/oauth-protected-resource/mcp", scope="read"'


@dataclass
class Issuer:
    """An authorization server. Tests change its public attributes."""

    site: Site = field(default_factory=lambda: Site(0))
    metadata: dict[str, Any] = field(default_factory=dict)
    registration: dict[str, Any] = field(default_factory=lambda: {"client_id": "made-up"})
    token: dict[str, Any] = field(default_factory=dict)
    """Overrides members of the token response."""
    callback: dict[str, str | None] = field(default_factory=dict)
    """Overrides parameters of the callback; None removes one."""
    answers: dict[str, Callable[[Received], Answer | None]] = field(default_factory=dict)
    """Replaces the answers of these paths."""
    issued: list[str] = field(default_factory=list)
    logins: list[dict[str, str]] = field(default_factory=list)
    forms: list[dict[str, str]] = field(default_factory=list)

    async def answer(self, received: Received) -> Answer:
        path = received.path.partition("?")[0]
        own = self.answers.get(path)
        if own is not None and (answer := own(received)) is not None:
            return answer
        match path:
            case "/.well-known/oauth-authorization-server":
                return as_json(self.document)
            case "/register":
                return as_json(self.registration, 201)
            case "/authorize":
                return self._redirect(received)
            case "/token":
                return self._issue(received)
        return NOT_FOUND

    @property
    def document(self) -> dict[str, Any]:
        url = self.site.url
        own = {f"{name}_endpoint": f"{url}/{path}" for name, path in ENDPOINTS.items()}
        own |= {"issuer": url, "code_challenge_methods_supported": ["S256"]}
        return {key: value for key, value in {**own, **self.metadata}.items() if value is not None}

    def _redirect(self, received: Received) -> Answer:
        query = dict(parse_qsl(urlsplit(received.path).query))
        self.logins.append(query)
        given = {"code": f"code-{len(self.logins)}", "state": query["state"], **self.callback}
        back = httpx.URL(query["redirect_uri"], params={key: value for key, value in given.items() if value})
        return Answer(302, b"", {"location": str(back)})

    def _issue(self, received: Received) -> Answer:
        self.forms.append(dict(parse_qsl(received.body.decode())))
        self.issued.append(f"token-{self.site.port}-{len(self.issued)}")
        return as_json({"access_token": self.issued[-1], "token_type": "Bearer", "expires_in": 3600, **self.token})


ENDPOINTS = {"authorization": "authorize", "token": "token", "registration": "register"}


class Person:
    """Follows the redirect of the issuer, as a browser does."""

    redirect_uris = (REDIRECT,)

    async def open(self, url: str) -> Mapping[str, str]:
        async with httpx.AsyncClient(verify=NO_TLS) as browser:
            answer = await browser.get(url, follow_redirects=False)
        return dict(parse_qsl(urlsplit(answer.headers["location"]).query))


@dataclass
class World:
    """The server, its issuer, another issuer, and clients."""

    issuer: Issuer
    other: Issuer
    site: Site = field(default_factory=lambda: Site(0))
    resource: Any = field(default_factory=dict)
    """Overrides members of the metadata of the server; None for a server without metadata."""
    judge: Callable[[Received, str], Answer | None] = lambda received, token: None
    """The server's answer to a request with a token; None means 200."""
    now: float = 1_000_000.0
    challenge: str = CHALLENGE

    @property
    def url(self) -> str:
        return f"{self.site.url}/mcp"

    @property
    def grants(self) -> list[str]:
        """The grant type of each token request."""
        return [form["grant_type"] for form in self.issuer.forms]

    async def answer(self, received: Received) -> Answer:
        if received.path == "/.well-known/oauth-protected-resource/mcp" and self.resource is not None:
            return as_json({"resource": self.url, "authorization_servers": [self.issuer.site.url], **self.resource})
        if received.path != "/mcp":
            return NOT_FOUND
        _, _, token = received.headers.get("authorization", "").partition(" ")
        if token not in (*self.issuer.issued, *self.other.issued):
            return self.refuse()
        return self.judge(received, token) or as_json({})

    def refuse(self, status: int = 401, **headers: str) -> Answer:
        return as_json({}, status, www_authenticate=self.challenge.format(self.site.url), **headers)

    def client(self, grant: Grant | None = None, *, tokens: TokenStore | None = None, **options: Any) -> OAuth:
        given = OAuthOptions(now=lambda: self.now, **options)
        return OAuth(self.url, grant or AuthorizationCode(Person()), tokens=tokens, options=given, web=Web(timeout=5))

    async def get(self, client: OAuth) -> int:
        async with httpx.AsyncClient(auth=HttpxAuth(client), verify=NO_TLS) as http:
            return (await http.get(self.url)).status_code


@asynccontextmanager
async def open_world() -> AsyncIterator[World]:
    issuer, other = Issuer(), Issuer()
    world = World(issuer, other)
    async with serving(issuer.answer) as one, serving(other.answer) as two, serving(world.answer) as site:
        issuer.site, other.site, world.site = one, two, site
        yield world


def claims(token: str) -> dict[str, Any]:
    """The claims of a token, without a check of its signature."""
    found: dict[str, Any] = json.loads(jws.extract_compact(token.encode()).payload)
    return found
