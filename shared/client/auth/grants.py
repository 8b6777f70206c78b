"""By what a client obtains its tokens: a person who logs in, a secret of its own, or what somebody vouches for."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol

from authlib.oauth2.rfc7523.jwt_bearer import JWT_BEARER_GRANT_TYPE

from ...auth.metadata import IssuerMetadata
from ...auth.web import Web
from ...errors import AuthError, LoginRequired
from ...text import escape
from .authorization import Authorization, Redirect
from .registration import ClientInformation
from .token_endpoint import TokenEndpoint
from .tokens import Token

_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
_KIND = "urn:ietf:params:oauth:token-type:"

Identity = str | Callable[[], Awaitable[str]]
"""A signed token of somebody who vouches, or what gets one, anew each time: they do not last."""


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """What a token is wanted for."""

    web: Web
    issuer: IssuerMetadata
    endpoint: TokenEndpoint
    client: ClientInformation | None
    resource: str | None
    """As the server names itself, exactly."""
    scopes: frozenset[str]

    async def ask(self, grant_type: str, **fields: str | None) -> Token:
        """The token of a grant with `fields`. Raises `AuthError`."""
        scope = " ".join(sorted(self.scopes)) or None
        return await self.endpoint.ask(grant_type, {**fields, "resource": self.resource, "scope": scope}, self.scopes)


class Grant(Protocol):
    """One way to a token. What it shows of ours is for one issuer alone: see `binding_of`."""

    @property
    def client(self) -> ClientInformation | None:
        """As what the client is registered; None where it has to find that out, or is nobody's client."""

    @property
    def redirect(self) -> Redirect | None:
        """How a person logs in; None where no person does."""

    @property
    def needs_person(self) -> bool:
        """Whether a person is asked."""

    async def obtain(self, request: TokenRequest) -> Token:
        """A new token. Raises `AuthError`."""


@dataclass(frozen=True, slots=True)
class AuthorizationCode:
    """A person logs in at the issuer, with a browser."""

    redirect: Redirect | None
    """None where nobody is there to be asked: what was kept of an earlier login serves, and is refreshed."""
    client: ClientInformation | None = None
    metadata_url: str | None = None
    """A URL of https at which the client says of itself what issuers want to know, which is its id then."""
    name: str = "mcp-server-bundle"
    """How issuers show the client to people."""
    advice: Callable[[frozenset[str]], str] | None = None
    """What people are told who have to log in, and for which scopes, where there is no `redirect`."""
    needs_person = True

    def login_required(self, lacks: frozenset[str] = frozenset()) -> LoginRequired:
        """What is raised where nobody is there to be asked. `lacks` is what an earlier login does not allow."""
        why = f"the login lacks the scope {escape(' '.join(sorted(lacks)))[:200]}" if lacks else "nobody is logged in"
        return LoginRequired(f"{why}; {'log in to the server' if self.advice is None else self.advice(lacks)}")

    async def obtain(self, request: TokenRequest) -> Token:
        """Sends the person to the issuer. Raises `LoginRequired` where there is none, and other `AuthError`s."""
        if self.redirect is None or request.client is None:
            raise self.login_required()
        begun, redirect_uri = Authorization.begin(), self.redirect.redirect_uris[0]
        page = begun.url(request.issuer, request.client.client_id, redirect_uri, request.scopes, request.resource)
        code = begun.code(await self.redirect.open(page), request.issuer)
        # The scopes of a code are those of its request (RFC 6749, section 4.1.3).
        return await request.endpoint.ask(
            "authorization_code",
            {
                "code": code,
                "redirect_uri": redirect_uri,
                "code_verifier": begun.verifier,
                "client_id": request.client.client_id,
                "resource": request.resource,
            },
            request.scopes,
        )


@dataclass(frozen=True, slots=True)
class ClientCredentials:
    """The client itself is who uses the server (the extension `io.modelcontextprotocol/oauth-client-credentials`)."""

    client: ClientInformation
    redirect = None
    needs_person = False

    async def obtain(self, request: TokenRequest) -> Token:
        """Asks with the secret or the key of the client. Raises `AuthError`."""
        return await request.ask("client_credentials")


@dataclass(frozen=True, slots=True)
class EnterpriseManaged:
    """The identity provider of an enterprise says what its people may use (the extension
    `io.modelcontextprotocol/enterprise-managed-authorization`)."""

    client: ClientInformation
    """As the issuer of the server knows it."""
    identity: Identity = field(repr=False)
    """The id token of the person, from the provider."""
    provider_client: ClientInformation
    """As the provider knows it."""
    provider_endpoint: str
    """Its token endpoint."""
    redirect = None
    needs_person = False

    async def obtain(self, request: TokenRequest) -> Token:
        """Has the provider vouch for the person, and shows that to the issuer. Raises `AuthError`."""
        provider = IssuerMetadata(
            issuer=self.provider_client.issuer or self.provider_endpoint, token_endpoint=self.provider_endpoint
        )
        endpoint = TokenEndpoint(request.web, provider, self.provider_client, request.endpoint.now)
        fields = {
            "requested_token_type": f"{_KIND}id-jag",
            "subject_token": await _current(self.identity),
            "subject_token_type": f"{_KIND}id_token",
            "audience": request.issuer.issuer,
            "resource": request.resource,
            "scope": " ".join(sorted(request.scopes)) or None,
        }
        answer = await endpoint.ask_document(_EXCHANGE, fields)
        grant = answer.get("access_token")
        if answer.get("issued_token_type") != f"{_KIND}id-jag" or not isinstance(grant, str):
            raise AuthError("the identity provider has not vouched for the person")
        return await request.ask(JWT_BEARER_GRANT_TYPE, assertion=grant)


@dataclass(slots=True)
class WorkloadIdentity:
    """The platform that a program runs on says who it is (the extension `io.modelcontextprotocol/auth/wif`)."""

    identity: Identity = field(repr=False)
    client: ClientInformation | None = None
    issuer: str | None = None
    """To which alone it is shown; None for the first one that the server names."""
    redirect = None
    needs_person = False
    _refused: tuple[str, AuthError] | None = field(default=None, repr=False, init=False)

    async def obtain(self, request: TokenRequest) -> Token:
        """Shows the identity to the issuer: once, as one that was refused will be again. Raises `AuthError`."""
        assertion = await _current(self.identity)
        # The extension forbids to try again: an identity that was refused once is refused for a reason that does
        # not pass.
        if self._refused is not None and self._refused[0] == assertion:
            raise self._refused[1]
        try:
            return await request.ask(JWT_BEARER_GRANT_TYPE, assertion=assertion)
        except AuthError as error:
            self._refused = assertion, error
            raise


def binding_of(grant: Grant) -> tuple[str | None, str | None]:
    """What `grant` shows that is for one issuer alone, as a store calls it, and which that is, where that is said
    (2026-07-28, Authorization, Authorization Server Binding). None for what every issuer may see."""
    if grant.client is not None:
        return grant.client.client_id, grant.client.issuer
    return ("workload identity", grant.issuer) if isinstance(grant, WorkloadIdentity) else (None, None)


async def _current(identity: Identity) -> str:
    return identity if isinstance(identity, str) else await identity()
