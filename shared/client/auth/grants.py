"""The grants by which a client obtains tokens: the login of a person, a secret of the client, or the assertion of a
third party."""

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

_EXCHANGE_GRANT = "urn:ietf:params:oauth:grant-type:token-exchange"
_TYPE_URN_PREFIX = "urn:ietf:params:oauth:token-type:"

Identity = str | Callable[[], Awaitable[str]]
"""A signed token of an identity provider, or a function that returns a new one each time, since such tokens expire
soon."""


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """The parameters of a request for a token."""

    web: Web
    issuer: IssuerMetadata
    endpoint: TokenEndpoint
    client: ClientInformation | None
    resource: str | None
    """The server's resource identifier, exactly as in its metadata."""
    scopes: frozenset[str]

    async def request_token(self, grant_type: str, **fields: str | None) -> Token:
        """Request a token with `grant_type` and its `fields`. Raises `AuthError`."""
        scope = " ".join(sorted(self.scopes)) or None
        return await self.endpoint.request_token(
            grant_type, {**fields, "resource": self.resource, "scope": scope}, self.scopes
        )


class Grant(Protocol):
    """A way to obtain a token. Its credentials are presented to one issuer only, see `binding_of`."""

    @property
    def client(self) -> ClientInformation | None:
        """The registration of the client; None if it is not registered yet, or the grant needs none."""

    @property
    def redirect(self) -> Redirect | None:
        """The login page and its redirect; None if no person logs in."""

    @property
    def needs_person(self) -> bool:
        """True if a person is asked to log in."""

    async def obtain(self, request: TokenRequest) -> Token:
        """Return a new token. Raises `AuthError`."""


@dataclass(frozen=True, slots=True)
class AuthorizationCode:
    """A person logs in at the issuer with a browser."""

    redirect: Redirect | None
    """Opens the login page. None if no user can log in: then only a stored earlier login is used and refreshed."""
    client: ClientInformation | None = None
    metadata_url: str | None = None
    """An https URL of the client's own metadata document for issuers; the URL is then also the client's id."""
    name: str = "mcp-server-bundle"
    """The name of the client that issuers show to users."""
    advice: Callable[[frozenset[str]], str] | None = None
    """Returns advice on how to log in for the given scopes; used if there is no `redirect`."""
    needs_person = True

    def login_required(self, missing_scopes: frozenset[str] = frozenset()) -> LoginRequired:
        """Return the error to raise if no user can log in. An earlier login did not grant `missing_scopes`."""
        reason = (
            f"the login lacks the scope {escape(' '.join(sorted(missing_scopes)))[:200]}"
            if missing_scopes
            else "not logged in"
        )
        return LoginRequired(
            f"{reason}; {'log in to the server' if self.advice is None else self.advice(missing_scopes)}"
        )

    async def obtain(self, request: TokenRequest) -> Token:
        """Send the user to the issuer's login page, and exchange the code for a token. Raises `LoginRequired` if no
        user can log in, and other `AuthError`s."""
        if self.redirect is None or request.client is None:
            raise self.login_required()
        authorization, redirect_uri = Authorization.begin(), self.redirect.redirect_uris[0]
        login_url = authorization.url(
            request.issuer, request.client.client_id, redirect_uri, request.scopes, request.resource
        )
        code = authorization.code(await self.redirect.open(login_url), request.issuer)
        # The code already contains the scopes, so they are not sent again (RFC 6749, section 4.1.3).
        return await request.endpoint.request_token(
            "authorization_code",
            {
                "code": code,
                "redirect_uri": redirect_uri,
                "code_verifier": authorization.verifier,
                "client_id": request.client.client_id,
                "resource": request.resource,
            },
            request.scopes,
        )


@dataclass(frozen=True, slots=True)
class ClientCredentials:
    """The client acts for itself, without a user (the extension
    `io.modelcontextprotocol/oauth-client-credentials`)."""

    client: ClientInformation
    redirect = None
    needs_person = False

    async def obtain(self, request: TokenRequest) -> Token:
        """Request a token with the secret or the key of the client. Raises `AuthError`."""
        return await request.request_token("client_credentials")


@dataclass(frozen=True, slots=True)
class EnterpriseManaged:
    """The identity provider of an enterprise decides which servers its users may use (the extension
    `io.modelcontextprotocol/enterprise-managed-authorization`)."""

    client: ClientInformation
    """The client's registration with the issuer of the server."""
    identity: Identity = field(repr=False)
    """The user's id token from the identity provider."""
    provider_client: ClientInformation
    """The client's registration with the identity provider."""
    provider_endpoint: str
    """The token endpoint of the identity provider."""
    redirect = None
    needs_person = False

    async def obtain(self, request: TokenRequest) -> Token:
        """Request an assertion about the user from the identity provider, and present it to the issuer. Raises
        `AuthError`."""
        provider = IssuerMetadata(
            issuer=self.provider_client.issuer or self.provider_endpoint, token_endpoint=self.provider_endpoint
        )
        endpoint = TokenEndpoint(request.web, provider, self.provider_client, request.endpoint.now)
        fields = {
            "requested_token_type": f"{_TYPE_URN_PREFIX}id-jag",
            "subject_token": await _get_assertion(self.identity),
            "subject_token_type": f"{_TYPE_URN_PREFIX}id_token",
            "audience": request.issuer.issuer,
            "resource": request.resource,
            "scope": " ".join(sorted(request.scopes)) or None,
        }
        answer = await endpoint.request_document(_EXCHANGE_GRANT, fields)
        assertion = answer.get("access_token")
        if answer.get("issued_token_type") != f"{_TYPE_URN_PREFIX}id-jag" or not isinstance(assertion, str):
            raise AuthError("the identity provider returned no identity assertion")
        return await request.request_token(JWT_BEARER_GRANT_TYPE, assertion=assertion)


@dataclass(slots=True)
class WorkloadIdentity:
    """The platform on which a program runs asserts the program's identity (the extension
    `io.modelcontextprotocol/auth/wif`)."""

    identity: Identity = field(repr=False)
    client: ClientInformation | None = None
    issuer: str | None = None
    """The only issuer to which the identity is presented; None for the first one that the server names."""
    redirect = None
    needs_person = False
    _refused: tuple[str, AuthError] | None = field(default=None, repr=False, init=False)

    async def obtain(self, request: TokenRequest) -> Token:
        """Present the identity to the issuer. A refused identity is not presented again. Raises `AuthError`."""
        assertion = await _get_assertion(self.identity)
        # The extension forbids presenting a refused identity again.
        if self._refused is not None and self._refused[0] == assertion:
            raise self._refused[1]
        try:
            return await request.request_token(JWT_BEARER_GRANT_TYPE, assertion=assertion)
        except AuthError as error:
            self._refused = assertion, error
            raise


def binding_of(grant: Grant) -> tuple[str | None, str | None]:
    """Return a name for the credential of `grant` that is bound to one issuer, and that issuer if it is known;
    `(None, None)` if no credential is bound to an issuer. (2026-07-28, Authorization, Authorization Server
    Binding.)"""
    if grant.client is not None:
        return grant.client.client_id, grant.client.issuer
    return ("workload identity", grant.issuer) if isinstance(grant, WorkloadIdentity) else (None, None)


async def _get_assertion(identity: Identity) -> str:
    return identity if isinstance(identity, str) else await identity()
